"""upgrade.yml exchanges the release under load, and takes a broken one back on the canary."""

import pytest

from rollout.playbooks import BIN
from rollout.releases import release
from rollout.served import Served
from support.containers import properties
from support.product import PROXY, Product
from support.proxy_unit import unit_of

pytestmark = [pytest.mark.lab, pytest.mark.network]

CALL = {"server": "echo", "tool": "echo", "arguments": {"text": "x"}, "token_file": "/root/token"}
VENV = "/usr/lib/mcp-bridge/venv"
# Each is a way to be broken: never comes up; comes up, and answers calls with an error.
BROKEN = {
    "dies": ("cli/serve.py", "def run(", "raise SystemExit(3)\n\n\ndef run("),
    "fails": ("proxy/endpoint.py", "async def _post(", "async def _lost("),
}


@pytest.fixture(scope="module")
def hosts(lab, need, tmp_path_factory):
    need(str(BIN / "ansible-playbook"))
    made = Served(lab, tmp_path_factory.mktemp("upgrade"), "upg")
    made.variables["mcp_bridge_health_calls"] = [CALL]
    try:
        made.up("upgrade.yml")
        for container in made.containers:
            container.write("/root/token", made.token, mode=0o600)
        yield made
    finally:
        made.down()


def programs(hosts):
    """Each host's release: the venv that its proxy runs from."""
    found = []
    for container in hosts.containers:
        pid = properties(container, PROXY, "MainPID")["MainPID"]
        words = container.check("cat", f"/proc/{pid}/cmdline")
        assert VENV in words
        found.append(container.check("readlink", VENV).strip())
    return found


def invocations(hosts):
    return [properties(c, unit_of("echo"), "InvocationID") for c in hosts.containers]


def restarts(hosts):
    return [properties(container, PROXY, "InvocationID") for container in hosts.containers]


async def test_a_release_is_exchanged_under_load_without_a_failed_call(
    hosts, tmp_path, record_property
):
    newer = release(tmp_path / "newer", "__init__.py", '__version__ = "0', '__version__ = "9.0')
    old = programs(hosts)
    async with hosts.load() as load:
        before = invocations(hosts)
        shown = await hosts.run_meanwhile(
            "upgrade.yml", "--check", "--diff", mcp_bridge_host_dist=str(newer)
        )
        assert programs(hosts) == old
        run = await hosts.run_meanwhile("upgrade.yml", mcp_bridge_host_dist=str(newer))

    record_property("calls", load.calls)
    record_property("failed_calls", len(load.failed))
    record_property("longest_seconds", round(load.longest, 1))
    assert run.status == 0, run.output
    assert load.failed == []
    assert invocations(hosts) == before
    assert shown.status == 0, shown.output
    assert all(now != then for now, then in zip(programs(hosts), old, strict=True))
    for container in hosts.containers:
        assert "9.0" in Product(container).cli("--version")
        assert container.check("ls", "/usr/lib/mcp-bridge").count("venv-") == 1
    again = hosts.run("upgrade.yml", mcp_bridge_host_dist=str(newer)).checked()
    assert set(again.changed.values()) == {0}


@pytest.mark.parametrize("how", BROKEN)
async def test_a_broken_release_is_taken_back_on_the_canary_and_reaches_no_further_host(
    hosts, tmp_path, record_property, how
):
    broken = release(tmp_path / "broken", *BROKEN[how])
    old, (_, second) = programs(hosts), restarts(hosts)
    async with hosts.load() as load:
        before = invocations(hosts)
        run = await hosts.run_meanwhile("upgrade.yml", mcp_bridge_host_dist=str(broken))

    record_property("calls", load.calls)
    record_property("failed_calls", len(load.failed))
    record_property("longest_seconds", round(load.longest, 1))
    assert run.status != 0, run.output
    assert "The release before is back" in run.output, run.output
    assert programs(hosts) == old
    assert restarts(hosts)[1] == second
    assert invocations(hosts) == before
    assert run.changed.get(hosts.names[1], 0) == 0
    if how == "dies":
        assert load.failed == []
    async with hosts.load() as later:
        pass
    assert later.failed == []


def test_a_debian_package_is_refused(hosts):
    run = hosts.run("upgrade.yml", mcp_bridge_host_deb="/root/any.deb")
    assert run.status != 0, run.output
    assert "mcp_bridge_host_deb is set" in run.output
    assert set(run.changed.values()) == {0}


def test_a_host_that_is_not_well_already_is_left_alone(hosts):
    calls = [{**CALL, "tool": "no-such-tool"}]
    old = programs(hosts)
    run = hosts.run("upgrade.yml", mcp_bridge_health_calls=calls)
    assert run.status != 0, run.output
    assert set(run.changed.values()) == {0}
    assert programs(hosts) == old
