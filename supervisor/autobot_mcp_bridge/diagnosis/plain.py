"""The smaller doctor, of a server that is a child of the proxy: look, start it, say how it fails."""

import asyncio
import os
import shutil
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from autobot_mcp_bridge.config.load import load
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.diagnosis import needs, wrapped
from autobot_mcp_bridge.diagnosis.bench import ChildBench
from autobot_mcp_bridge.diagnosis.check import Check, Level, fail, ok
from autobot_mcp_bridge.diagnosis.outcome import Outcome
from autobot_mcp_bridge.diagnosis.remote_end import of_remote
from autobot_mcp_bridge.diagnosis.verdict import Report, Verdict, of_check
from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.death import DeathCause
from autobot_mcp_bridge.model.errors import Cause
from autobot_mcp_bridge.model.finding import Finding
from autobot_mcp_bridge.model.names import ServerId
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.runtimes.subprocess import SubprocessRuntime
from autobot_mcp_bridge.units.packages import remote
from autobot_mcp_bridge.units.packages.job import InstallError
from autobot_mcp_bridge.units.packages.live import is_live
from autobot_mcp_bridge.units.packages.resolve import resolve
from autobot_mcp_bridge.units.packages.specs import PackageSpec
from autobot_mcp_bridge.units.packages.store import Store

MOST_WORDS = 20


async def examine_plain(
    server: ServerId, places: Places, *, deadline: float, tell: Callable[[str], None]
) -> Report:
    """Examine a server without systemd; a directory of its own keeps it off the running one's.

    It has `deadline` seconds for the try; `tell` gets lines of progress.
    """
    loaded = await asyncio.to_thread(load, places)
    spec = next((each for each in loaded.servers if each.instance == server.instance), None)
    if spec is None:
        told = "; ".join(map(str, loaded.problems)) or "its definition was not read"
        check = fail("configuration", f"is not in force: {told}", Finding.NOT_IN_FORCE, "mend that")
        return Report(server.instance, of_check(check), (check,))
    command, checks = await asyncio.to_thread(_looked, spec, places)
    failure = next((check for check in checks if check.level is Level.FAIL), None)
    if failure is not None or command is None:
        verdict = of_check(failure or checks[-1])
        return Report(server.instance, verdict, tuple(checks))
    tell("try 1: as it is")
    verdict = await _tried(spec, command, places, deadline)
    return Report(server.instance, verdict, tuple(checks), 1)


def _looked(spec: ServerSpec, places: Places) -> tuple[Command | None, list[Check]]:
    checks = [ok("sandbox", "none: without systemd a server is a child of the proxy")]
    if not spec.enabled:
        mend = f"run: mcp-bridge enable {spec.instance}"
        return None, [*checks, fail("configuration", "is disabled", Cause.DISABLED.word, mend)]
    found: Command | PackageSpec
    try:
        if spec.url is not None:
            found = remote.command(spec, sys.executable, units=False)
        else:
            found = resolve(spec.command, Store(places.packages), os.environ, live=is_live(spec))
    except InstallError as error:
        return None, [
            *checks,
            needs.unusable_program(spec, str(error)),
        ]
    if isinstance(found, PackageSpec):
        text = f"is not installed yet: {found.label}"
        return None, [
            *checks,
            fail("package", text, Cause.INSTALLING.word, "run: mcp-bridge fetch"),
        ]
    checks += needs.guarded("command", needs.of_command(spec, found.argv))
    return found, checks


async def _tried(spec: ServerSpec, command: Command, places: Places, deadline: float) -> Verdict:
    words: deque[str] = deque(maxlen=MOST_WORDS)
    # Not its own directory, in which it may be running.
    folder = places.runtime_dir / f"doctor-{os.getpid()}"
    runtime = SubprocessRuntime(folder, log=lambda _instance, line: words.append(line))
    within = min(spec.timeouts.start, deadline)
    try:
        async with asyncio.timeout(deadline):
            bench = ChildBench(spec, command, runtime)
            outcome = await bench.attempt((), within, max(0.0, deadline / 2 - within))
    except TimeoutError:
        why = "does not start, and the time was over before its cause was found"
        return Verdict(Finding.UNDECIDED, why, advice="run doctor with a larger --deadline")
    finally:
        await runtime.close()
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return _judged(spec, outcome, tuple(words))


def _judged(spec: ServerSpec, outcome: Outcome, words: tuple[str, ...]) -> Verdict:
    outcome = outcome if outcome.words else replace(outcome, words=words)
    if outcome.works and (outcome.seconds or 0.0) <= spec.timeouts.start:
        return Verdict(
            "", f"starts: it answers initialize after {outcome.seconds:.2f} s", (), "", outcome
        )
    code, why, advice = _reason(outcome)
    return of_remote(spec, Verdict(code, why, (), advice, outcome))


def _reason(outcome: Outcome) -> tuple[Finding, str, str]:
    if outcome.works:
        why = f"answers initialize after {outcome.seconds:.1f} s, later than timeouts.start"
        return Finding.SLOW_START, why, "raise timeouts.start"
    if outcome.cause is DeathCause.MEMORY:
        return Finding.MEMORY_LIMIT, "needs more memory than limits.memory", "raise limits.memory"
    if outcome.flushed:
        return Finding.STDOUT_BUFFERED, wrapped.BUFFERED, wrapped.FLUSH
    if outcome.noise:
        return Finding.STDOUT_NOISE, wrapped.noisy(outcome.noise), wrapped.STDERR
    return Finding.SERVER_FAULT, f"fails by its own fault: {outcome.said}", ""
