"""What the probe finds out of a machine with cgroup v2 and all its controllers."""

import pytest

from autobot_mcp_bridge.model.promises import Promise
from sandbox.probing import NOTHING, PROBE, kept, probed

pytestmark = pytest.mark.vm

SCHEDULER = "/sys/block/vda/queue/scheduler"
# What only cgroup v2 has, too.
LESS = f"{NOTHING}MemoryHigh=infinity\nMemorySwapMax=infinity\nIOWeight=\n"


@pytest.fixture(scope="module")
def warm(vm):
    """The machine, in which the probe has run once: then, emulated, it takes three times as long."""
    vm.write(f"/etc/systemd/system/{PROBE}.d/80-emulated.conf", "[Service]\nTimeoutStartSec=4min\n")
    vm.check("systemctl", "daemon-reload")
    probed(vm)
    return vm


@pytest.fixture
def divided_disk(vm):
    """A disk whose scheduler knows of weights."""
    vm.check("sh", "-c", f"modprobe bfq && echo bfq > {SCHEDULER}")
    yield
    vm.check("sh", "-c", f"echo none > {SCHEDULER}")


def test_every_promise_is_kept_on_cgroup_v2_and_found_missing_when_taken_away(
    warm, without, swap, divided_disk, record_property
):
    here = probed(warm)
    without(warm, LESS)
    bare = probed(warm)

    assert {*here} == {*bare} == {*Promise}
    assert kept(here) == {*Promise}, here
    assert kept(bare) == set(), bare
    assert all(found["why"] for found in bare.values())
    record_property("promises_tried", len(kept(here)))


def test_a_weight_that_no_disk_knows_of_is_not_kept(warm):
    facts = probed(warm)

    assert kept(facts) == {*Promise} - {Promise.IO_WEIGHT}
    assert facts[Promise.IO_WEIGHT]["why"] == ("no disk has the scheduler bfq, and io.cost is off")
