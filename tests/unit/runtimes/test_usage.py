"""systemd is asked for a unit's cgroup only where that is not in its usual place, and once."""

from types import SimpleNamespace

from autobot_mcp_bridge.runtimes.systemd.usage import AT_ONCE, UnitUsage
from autobot_mcp_bridge.supervision.cgroups import Cgroups, Usage
from autobot_mcp_bridge.supervision.unit_paths import unit_of
from autobot_mcp_bridge.units.instances import SLICE


class Units:
    """Stands for the watcher: where each instance's cgroup is, and what was asked."""

    def __init__(self):
        self.groups, self.asked, self.invocation = {}, [], "a"

    def state(self, instance):
        return SimpleNamespace(invocation=f"{self.invocation}-{instance}")

    async def control_group(self, instance):
        self.asked.append(instance)
        return self.groups.get(instance, "")


def made(root, *groups):
    (root / "cgroup.controllers").write_text("pids\n")
    for group in groups:
        path = root / group.lstrip("/")
        path.mkdir(parents=True)
        (path / "pids.current").write_text("3\n")
    units = Units()
    return units, UnitUsage(units, Cgroups(root))


async def test_a_unit_in_its_usual_place_costs_no_question(tmp_path):
    units, found = made(tmp_path, f"/{SLICE}/{unit_of('files')}")

    assert await found.read(["files"]) == {"files": Usage(tasks=3)}
    assert units.asked == []


async def test_a_unit_elsewhere_is_asked_for_once_an_invocation(tmp_path):
    units, found = made(tmp_path, "/acme.slice/x.service")
    units.groups["files"] = "/acme.slice/x.service"
    for _ in range(3):
        assert await found.read(["files"]) == {"files": Usage(tasks=3)}
    assert units.asked == ["files"]


async def test_what_is_nowhere_is_not_asked_for_at_each_look(tmp_path):
    units, found = made(tmp_path)
    units.groups["files"] = "/gone.slice/x.service"
    for _ in range(3):
        assert await found.read(["files"]) == {}
    units.invocation = "b"
    assert await found.read(["files"]) == {}
    assert units.asked == ["files", "files"]


async def test_many_units_elsewhere_are_asked_for_in_turns(tmp_path):
    units, found = made(tmp_path, "/acme.slice/x.service")
    names = [f"s{number}" for number in range(AT_ONCE + 5)]
    units.groups = dict.fromkeys(names, "/acme.slice/x.service")

    assert len(await found.read(names)) == AT_ONCE
    assert len(await found.read(names)) == len(names)
    assert sorted(units.asked) == sorted(names)
