"""What both hierarchies of cgroups tell of a unit; what they do not tell is not made up."""

import pytest

from autobot_mcp_bridge.supervision.cgroups import UNLIMITED, Cgroups

GROUP = "/mcpbridge.slice/autobot-mcp-bridge@files.service"
V2 = {
    "memory.current": "1048576\n",
    "memory.high": "max\n",
    "memory.max": "536870912\n",
    "memory.events": "low 0\nhigh 3\nmax 4\noom 1\noom_kill 1\noom_group_kill 0\n",
    "pids.current": "7\n",
    "pids.max": "max\n",
    "cpu.stat": "usage_usec 2500000\nuser_usec 1\nsystem_usec 1\nthrottled_usec 500000\n",
}
V1 = {
    "memory/memory.usage_in_bytes": "1048576\n",
    "memory/memory.limit_in_bytes": "9223372036854771712\n",
    "memory/memory.failcnt": "4\n",
    "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
    "pids/pids.current": "7\n",
    "pids/pids.max": "128\n",
    "cpu/cpu.stat": "nr_periods 3\nnr_throttled 1\nthrottled_time 500000000\n",
    "cpuacct/cpuacct.usage": "2500000000\n",
}


def tree(root, files, *, unified):
    root.mkdir(exist_ok=True)
    if unified:
        (root / "cgroup.controllers").write_text("cpu memory pids\n")
    for name, text in files.items():
        controller, _, file = name.rpartition("/")
        path = root / controller / GROUP.lstrip("/") / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Cgroups(root)


def test_the_unified_hierarchy_tells_use_limits_and_events(tmp_path):
    used = tree(tmp_path, V2, unified=True).read(GROUP)

    assert (used.memory, used.memory_high, used.memory_max) == (1 << 20, UNLIMITED, 512 << 20)
    assert used.memory_events == {"high": 3, "max": 4, "oom": 1, "oom_kill": 1}
    assert (used.tasks, used.tasks_max) == (7, UNLIMITED)
    assert (used.cpu, used.throttled, used.errors) == (2.5, 0.5, 0)


def test_the_legacy_hierarchy_tells_the_same_but_the_soft_limit(tmp_path):
    used = tree(tmp_path, V1, unified=False).read(GROUP)

    assert (used.memory, used.memory_high, used.memory_max) == (1 << 20, None, UNLIMITED)
    assert used.memory_events == {"max": 4, "oom_kill": 1}
    assert (used.tasks, used.tasks_max) == (7, 128)
    assert (used.cpu, used.throttled, used.errors) == (2.5, 0.5, 0)


def test_a_hybrid_tree_tells_the_processor_time_that_v1_does_not(tmp_path):
    files = {name: text for name, text in V1.items() if not name.startswith("cpuacct")}
    used = tree(tmp_path, {**files, "unified/cpu.stat": "usage_usec 70\n"}, unified=False).read(
        GROUP
    )

    assert used.cpu == 70e-6


@pytest.mark.parametrize(("files", "unified"), [(V2, True), (V1, False)])
def test_each_file_that_is_absent_takes_only_its_own_figure_away(tmp_path, files, unified):
    whole = tree(tmp_path / "whole", files, unified=unified).read(GROUP)
    for gone in files:
        root = tmp_path / gone.replace("/", "-")
        left = {name: text for name, text in files.items() if name != gone}
        found = tree(root, left, unified=unified).read(GROUP)

        assert found != whole
        assert found.errors == 0


@pytest.mark.requirement("AB-47")
def test_a_file_that_cannot_be_read_is_counted_and_gives_no_figure(tmp_path):
    cgroups = tree(tmp_path, {**V2, "memory.max": "nonsense\n", "cpu.stat": "x\n"}, unified=True)
    (tmp_path / GROUP.lstrip("/") / "pids.max").unlink()
    (tmp_path / GROUP.lstrip("/") / "pids.max").mkdir()
    used = cgroups.read(GROUP)

    assert (used.memory_max, used.cpu, used.tasks_max, used.errors) == (None, None, None, 3)
    assert used.memory == 1 << 20


def test_a_group_that_is_not_there_tells_nothing(tmp_path):
    assert tree(tmp_path, {}, unified=True).read(GROUP) is None
    assert Cgroups(tmp_path / "nowhere").read(GROUP) is None


@pytest.mark.requirement("AB-47")
@pytest.mark.parametrize(
    ("memory", "high", "differs"),
    [
        (512 << 20, None, False),
        ((512 << 20) + 5, None, False),  # the kernel counts whole pages
        (256 << 20, None, True),
        (512 << 20, 128 << 20, True),
    ],
)
def test_limits_that_are_not_the_configured_ones_are_out_of_band(tmp_path, memory, high, differs):
    assert tree(tmp_path, V2, unified=True).read(GROUP).differs(memory, high) is differs


def test_a_host_without_soft_limits_is_not_out_of_band_for_that(tmp_path):
    files = {**V1, "memory/memory.limit_in_bytes": str(512 << 20)}

    assert not tree(tmp_path, files, unified=False).read(GROUP).differs(512 << 20, 128 << 20)
