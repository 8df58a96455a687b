"""`mcp-bridge doctor`: look, start once more beside the server, and find out by trying."""

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from autobot_mcp_bridge.config import accepted
from autobot_mcp_bridge.config.accepted import AcceptedServer
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.diagnosis import sample
from autobot_mcp_bridge.diagnosis.bench import UnitBench
from autobot_mcp_bridge.diagnosis.check import Check
from autobot_mcp_bridge.diagnosis.preflight import Preflight
from autobot_mcp_bridge.diagnosis.remote_end import of_remote
from autobot_mcp_bridge.diagnosis.search import Search
from autobot_mcp_bridge.diagnosis.verdict import Report, of_check
from autobot_mcp_bridge.model.names import ServerId
from autobot_mcp_bridge.model.redact import Redactor
from autobot_mcp_bridge.units.manager import Manager

RUNS = (
    "the server itself runs at the time, undisturbed; the tries share its state directory: one that "
    "locks a file there fails here only"
)


async def examine(
    server: ServerId,
    places: Places,
    manager: Manager,
    row: Mapping[str, Any] | None,
    *,
    deadline: float,
    tell: Callable[[str], None],
    relax: bool = True,
) -> Report:
    """Examine a server that is, or should be, an instance of the template unit; as root.

    `row` is what the proxy says of it; the tries together have `deadline` seconds; `tell` gets
    lines of progress; without `relax` it is started in its own sandbox only.

    Raises:
        DataError: accepted.json is not what apply writes.
        SystemctlError: systemd does not answer.
        asyncio.CancelledError: by SIGINT or SIGTERM; nothing is left behind.
    """
    for gone in await asyncio.to_thread(sample.sweep, manager):
        tell(f"removed {gone}, which a doctor that was killed has left")
    found = _find(await asyncio.to_thread(accepted.read, places.accepted), server.instance)
    before = Preflight(places, manager, row)
    original = await asyncio.to_thread(before.run, server.instance, found)
    if isinstance(original, Check):
        return Report(server.instance, of_check(original), tuple(before.checks))
    redact = Redactor(await asyncio.to_thread(original.secrets))
    bench = UnitBench(original, manager, redact)
    search = Search(bench, original, deadline, tell, relax=relax)
    with _cancelled_by_sigterm():
        verdict = of_remote(original.spec, await search.diagnose())
    held = before.held(server.instance)
    if not verdict.code and held is not None:
        verdict = of_check(held)
    notes = (RUNS,) if before.runs else ()
    return Report(server.instance, verdict, tuple(before.checks), search.tries, notes)


def _find(found: accepted.Accepted, instance: str) -> AcceptedServer | None:
    return next((each for each in found.servers if each.spec.instance == instance), None)


@contextmanager
def _cancelled_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the tries as SIGINT does, so that their clean-up runs."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    if task is not None:
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
