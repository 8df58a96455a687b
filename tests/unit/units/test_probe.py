"""What the probe reads of either hierarchy; what it tries is tried in the lab (tests/sandbox)."""

import builtins
import importlib.util
import io

import pytest

from autobot_mcp_bridge.model.promises import Promise
from rules.tree import ROOT

V2 = {
    "memory.high": "66060288",
    "memory.swap.max": "0",
    "cpu.weight": "50",
    "io.bfq.weight": "default 50",
}
V1 = {"memory.limit_in_bytes": "67108864", "cpu.shares": "512", "blkio.bfq.weight": "113"}
SWAPS = "Filename Type Size Used Priority\n"
SWAP = f"{SWAPS}/dev/vda2 partition 1 0 -2\n"


@pytest.fixture
def probe():
    spec = importlib.util.spec_from_file_location("probe", ROOT / "templates" / "probe.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tried(probe, tmp_path, monkeypatch):
    """Try one promise with these files of the cgroup, and these of the host."""

    def tried(name, files, *, unified, host=()):
        folder = tmp_path / ("v2" if unified else "v1")
        folder.mkdir()
        for file, text in files.items():
            (folder / file).write_text(f"{text}\n", encoding="ascii")
        nowhere = str(tmp_path / "nowhere")
        own = dict.fromkeys(("memory", "cpu", "io", "blkio", "pids"), str(folder))
        monkeypatch.setattr(probe, "groups", lambda: {"": str(folder)} if unified else own)
        monkeypatch.setattr(probe, "CGROUPS", nowhere)
        known, real = dict(host), builtins.open

        def opened(path, *words, **options):
            return io.StringIO(known[path]) if path in known else real(path, *words, **options)

        monkeypatch.setattr(builtins, "open", opened)
        return probe.tried(getattr(probe, name))

    return tried


def test_every_promise_is_tried_once(probe):
    assert {attempt.__name__ for attempt in probe.ATTEMPTS} == {*Promise}
    assert len(probe.ATTEMPTS) == len(Promise)


@pytest.mark.parametrize(
    ("name", "files", "unified", "host", "kept"),
    [
        ("memory_high", V2, True, {}, True),
        ("memory_high", {**V2, "memory.high": "max"}, True, {}, False),
        ("memory_high", V1, False, {}, False),
        ("memory_high", {}, True, {}, False),
        ("swap", V2, True, {"/proc/swaps": SWAP}, True),
        ("swap", {}, True, {"/proc/swaps": SWAP}, False),
        ("swap", V1, False, {"/proc/swaps": SWAP}, False),
        ("swap", V1, False, {"/proc/swaps": SWAPS}, True),
        ("cpu_weight", V2, True, {}, True),
        ("cpu_weight", V1, False, {}, True),
        ("cpu_weight", {**V2, "cpu.weight": "100"}, True, {}, False),
        ("cpu_weight", {}, True, {}, False),
        ("cpu", {}, True, {}, False),
        ("cpu", {"cpu.max": "max 100000", "cpu.stat": "nr_throttled 0"}, True, {}, False),
        ("cpu", {"cpu.cfs_quota_us": "-1", "cpu.stat": "nr_throttled 0"}, False, {}, False),
        ("io_weight", {}, True, {}, False),
    ],
)
def test_a_promise_is_kept_where_the_kernel_has_what_the_unit_asks_for(
    tried, name, files, unified, host, kept
):
    found = tried(name, files, unified=unified, host=host)

    assert found["kept"] is kept
    assert bool(found["why"]) is not kept


def test_a_weight_of_disks_counts_only_where_a_disk_s_scheduler_knows_it(tried, probe, monkeypatch):
    monkeypatch.setattr(probe.os, "listdir", lambda _path: ["vda"])
    scheduler = "/sys/block/vda/queue/scheduler"

    assert not tried("io_weight", V2, unified=True, host={scheduler: "[none] bfq"})["kept"]
    assert tried("io_weight", V1, unified=False, host={scheduler: "none [bfq]"})["kept"]


def test_an_attempt_that_cannot_be_made_is_not_kept_and_says_so(probe):
    def attempt():
        raise OSError(101, "Network is unreachable")

    assert probe.tried(attempt) == {"kept": False, "why": "it could not be tried: ENETUNREACH"}
