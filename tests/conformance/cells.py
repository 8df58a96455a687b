"""Our proxy in front of the conformance server, in each mode and era, under suite and probes."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from conformance import bars, suite
from conformance.probes import http, modern, routing, server, sessions, streams
from conformance.probing import PROBES, Peer, Probe, Seen, see
from support.bridge import Bridge
from support.fakes import entry

MODULES = (http, sessions, routing, server, modern, streams)  # importing them has filled PROBES
AT_ONCE = 2  # runs of the suite; more, and its own waits of half a second pass on a small machine
# These end the server's process, so that they come last.
ENDING = ("L33", "M30")
REFUSED = "servers.json: "  # before what the proxy says of a mistake in the file


class NotServedError(Exception):
    """The proxy refuses such servers; the message is its own."""


def definition(sessions_mode: str, era: str, name: str, *words: str) -> dict[str, Any]:
    more = {} if sessions_mode == bars.SHARED else {"sessions": sessions_mode}
    return entry("conformance/main", name, "--era", era, *words, **more)


@asynccontextmanager
async def serving(servers: Iterable[dict[str, Any]]) -> AsyncIterator[Bridge]:
    """A proxy with these servers.

    Raises:
        NotServedError: it refuses its configuration.
    """
    async with AsyncExitStack() as stack:
        try:
            bridge = await stack.enter_async_context(Bridge(servers))
        except AssertionError as fault:
            told = [line for line in str(fault).splitlines() if REFUSED in line]
            if not told:
                raise
            raise NotServedError(told[0].partition(REFUSED)[2]) from None
        yield bridge


def peer_of(bridge: Bridge, name: str) -> Peer:
    return Peer(bridge.url(name), bridge.token(name))


Reports = dict[bars.Bar, suite.Report]


async def reports(wanted: Iterable[bars.Bar]) -> Reports:
    """Run the suite as these bars say; they are of one mode.

    Raises:
        NotServedError: the mode is not served.
    """
    wanted = list(wanted)
    # A server for each run: what one revision's scenarios do to it does not concern the other's.
    servers = [definition(bar.sessions, bar.era, f"{bar.era}-{bar.revision}") for bar in wanted]
    gate = asyncio.Semaphore(AT_ONCE)

    async def run(bridge: Bridge, bar: bars.Bar) -> suite.Report:
        name = f"{bar.era}-{bar.revision}"
        headers = {"Authorization": f"Bearer {bridge.token(name)}"}
        async with gate:
            return await suite.run(bridge.url(name), headers, bar.revision)

    async with serving(servers) as bridge:
        found = await asyncio.gather(*(run(bridge, bar) for bar in wanted))
    return dict(zip(wanted, found, strict=True))


async def judged(bar: bars.Bar, report: suite.Report) -> list[suite.Report]:
    """The report, and where it misses its bar that of one more run, alone: the last one counts.

    Some of the suite's checks wait half a second, within which a loaded machine may not answer.
    """
    if bar.holds(report):
        return [report]
    return [report, *(await reports([bar])).values()]


def in_order(mode: str, idents: Iterable[str] = ()) -> list[Probe]:
    """These probes, or all, as far as they concern the mode, in the order in which they run."""
    chosen = [PROBES[ident] for ident in idents or PROBES if PROBES[ident].sessions in ("", mode)]
    return sorted(chosen, key=lambda one: (one.ident in ENDING, one.ident))


def eras(mode: str, idents: Iterable[str] = ()) -> list[str]:
    """What servers must speak for these probes, or for all."""
    return sorted({one.era for one in in_order(mode, idents)})


async def probed(mode: str, idents: Iterable[str] = ()) -> list[Seen]:
    """Run probes against servers of the eras that they want.

    Raises:
        NotServedError: the mode is not served.
    """
    probes = in_order(mode, idents)
    async with serving(definition(mode, era, era) for era in eras(mode, idents)) as bridge:
        found = []
        for era in eras(mode, idents):
            found += await see((one for one in probes if one.era == era), peer_of(bridge, era))
        return found
