"""What running units use: from their cgroups, and from the bus only where those lie elsewhere."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress

from autobot_mcp_bridge.supervision.bus import BusError
from autobot_mcp_bridge.supervision.cgroups import Cgroups, Usage
from autobot_mcp_bridge.supervision.unit_paths import unit_of
from autobot_mcp_bridge.supervision.watcher import Watcher
from autobot_mcp_bridge.units.instances import SLICE

# So many units are asked for their group at one time, for so long together: the next time goes on.
AT_ONCE = 20
WITHIN = 1.0


class UnitUsage:
    """Remembers where the cgroup of each invocation is that is not in its usual place."""

    def __init__(self, watcher: Watcher, cgroups: Cgroups) -> None:
        self._watcher = watcher
        self._cgroups = cgroups
        self.errors = 0  # files that were there and could not be read
        self._elsewhere: dict[str, tuple[str, str]] = {}  # instance to its invocation and group

    async def read(self, running: Iterable[str]) -> Mapping[str, Usage]:
        """By instance, for those whose cgroup tells something; some 0.15 ms each, in a thread."""
        names = tuple(running)
        self._elsewhere = {name: self._elsewhere[name] for name in names if name in self._elsewhere}
        found = await asyncio.to_thread(self._read, names)
        unknown = [name for name in names if name not in found and not self._is_known(name)]
        if unknown:
            with suppress(TimeoutError):
                async with asyncio.timeout(WITHIN):
                    await asyncio.gather(*map(self._ask, unknown[:AT_ONCE]))
            found |= await asyncio.to_thread(self._read, unknown[:AT_ONCE])
        return found

    def _read(self, names: Iterable[str]) -> dict[str, Usage]:
        usage = {}
        for name in names:
            group = self._elsewhere.get(name, ("", _usual(name)))[1]
            found = self._cgroups.read(group)
            if found is not None:
                self.errors += found.errors
                usage[name] = found
        return usage

    def _invocation(self, name: str) -> str:
        state = self._watcher.state(name)
        return state.invocation if state is not None else ""

    def _is_known(self, name: str) -> bool:
        """Whether systemd has been asked already: then there is nothing to be read."""
        return self._elsewhere.get(name, ("",))[0] == self._invocation(name) != ""

    async def _ask(self, name: str) -> None:
        invocation = self._invocation(name)
        with suppress(BusError):
            group = await self._watcher.control_group(name)
            self._elsewhere[name] = (invocation, group or _usual(name))


def _usual(name: str) -> str:
    return f"/{SLICE}/{unit_of(name)}"
