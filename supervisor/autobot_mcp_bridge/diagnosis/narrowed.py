"""For a relaxed directive the least part of it that does, with the line that says so."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from autobot_mcp_bridge.diagnosis import changes
from autobot_mcp_bridge.diagnosis.changes import FAMILIES, Change
from autobot_mcp_bridge.diagnosis.narrow import least
from autobot_mcp_bridge.diagnosis.original import Original
from autobot_mcp_bridge.diagnosis.unit_text import plain
from autobot_mcp_bridge.model.finding import Finding
from autobot_mcp_bridge.units.systemctl import SystemctlError, run_tool

Limit = Callable[[Original, int], Change]
Try = Callable[[str, Sequence[str]], Awaitable[bool]]
_GROWING: dict[Finding, Limit] = {
    Finding.MEMORY_LIMIT: changes.memory,
    Finding.TASKS_LIMIT: changes.tasks,
    Finding.OPEN_FILES_LIMIT: changes.open_files,
}
# Groups of systemd-analyze(1) that a stdio server's calls are likely to be of, the likeliest last.
_UNLIKELY = ("@known", "@privileged", "@mount", "@debug", "@sandbox", "@pkey", "@resources")


class Narrower:
    """Narrows what was found, by further tries."""

    def __init__(self, original: Original, attempt: Try) -> None:
        self._original = original
        self._try = attempt

    async def narrow(self, change: Change, beside: Sequence[str]) -> Change:
        """The change in its least form; `beside` are lines that are needed, too."""

        async def works(what: str, lines: Sequence[str]) -> bool:
            return await self._try(what, (*beside, *lines))

        match change.finding:
            case Finding.SYSCALL_DENIED:
                return await self._calls(change, works)
            case Finding.ADDRESS_FAMILY_DENIED:
                return await self._families(change, works)
            case Finding.NOT_EXECUTABLE:
                return await self._places(change, works)
            case Finding() if change.finding in _GROWING:
                return await self._limit(change, _GROWING[change.finding], works)
            case Finding.NETWORK_NEEDED if change.key:
                return await self._network(change, works)
            case _ if len(change.lines) > 1 and not change.key:
                return await self._lines(change, works)
        return change

    async def _calls(self, change: Change, works: Try) -> Change:
        allowed = frozenset(self._original.facts.system_calls)
        denied = [name for name in known_calls() if name not in allowed]

        async def do(names: Sequence[str]) -> bool:
            return await works(f"with {len(names)} system calls more", _calls(names))

        if not allowed or not await do(denied):
            return change
        names = await least(denied, do)
        if not names:
            return change
        called = f"the system call {names[0]}" if len(names) == 1 else f"{', '.join(names)}"
        why = f"makes {called}, which SystemCallFilter= denies"
        return replace(change, why=why, lines=_calls(names))

    async def _families(self, change: Change, works: Try) -> Change:
        async def do(names: Sequence[str]) -> bool:
            return await works(f"with {' '.join(names) or 'no family'}", _families(names))

        names = await least(FAMILIES, do)
        if not names:
            return change
        what = "a socket" if len(names) == 1 else "sockets"
        why = f"makes {what} of {', '.join(names)}, which RestrictAddressFamilies= denies"
        return replace(change, why=why, lines=_families(names))

    async def _places(self, change: Change, works: Try) -> Change:
        """All places but the needed ones are named again: one that stands in both lists is in one."""
        all_places = self._original.entries("NoExecPaths")

        def lines(free: Sequence[str]) -> tuple[str, ...]:
            rest = [place for place in all_places if place not in free]
            return ("NoExecPaths=", *([f"NoExecPaths={' '.join(rest)}"] if rest else []))

        async def do(free: Sequence[str]) -> bool:
            return await works(
                f"with {' '.join(map(plain, free)) or 'no place'} executable", lines(free)
            )

        if not await do(all_places):
            return change
        places = await least(all_places, do)
        if not places:
            return change
        shown = " and ".join(map(plain, places))
        why = f"executes a file from {shown}, which NoExecPaths= denies"
        return replace(change, why=why, lines=lines(places))

    async def _limit(self, change: Change, make: Limit, works: Try) -> Change:
        factor = 2
        while factor < changes.WIDE:
            smaller = make(self._original, factor)
            if await works(f"with {smaller.lines[0]}", smaller.lines):
                return smaller
            factor *= 2
        return change

    async def _network(self, change: Change, works: Try) -> Change:
        """The mode that the key names lets less through than what made the server start."""
        if await works("with network.mode internet", changes.internet(self._original)):
            return change
        why = (
            "needs the network at its start, and more of it than network.mode internet lets through "
            "(a private address, or a resolver on loopback); network.mode list can name addresses"
        )
        return replace(change, why=why, key={})

    async def _lines(self, change: Change, works: Try) -> Change:
        async def do(lines: Sequence[str]) -> bool:
            return await works(f"with {', '.join(lines)}", lines)

        lines = await least(change.lines, do)
        return replace(change, lines=tuple(lines)) if lines else change


def known_calls() -> list[str]:
    """Every system call that systemd knows by name, those that are likely to be missed last."""
    found: dict[str, None] = {}
    for group in _UNLIKELY:
        try:
            shown = run_tool("systemd-analyze", "syscall-filter", group)
        except SystemctlError:
            continue  # a group that this systemd does not have
        names = (line.strip() for line in shown.splitlines())
        for name in names:
            if name and name[0] not in "@#":
                found.pop(name, None)
                found[name] = None
    return [*found]


def _calls(names: Sequence[str]) -> tuple[str, ...]:
    """Without a name the directive would mean the opposite: everything."""
    return (f"SystemCallFilter={' '.join(names)}",) if names else ()


def _families(names: Sequence[str]) -> tuple[str, ...]:
    return (f"RestrictAddressFamilies={' '.join(names)}",) if names else ()
