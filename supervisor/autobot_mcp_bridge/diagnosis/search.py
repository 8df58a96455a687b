"""Why a server does not start, by trying: what makes it start is the cause."""

import asyncio
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from autobot_mcp_bridge.diagnosis import changes, wrapped
from autobot_mcp_bridge.diagnosis.bench import Bench
from autobot_mcp_bridge.diagnosis.changes import Change
from autobot_mcp_bridge.diagnosis.narrow import least
from autobot_mcp_bridge.diagnosis.narrowed import Narrower
from autobot_mcp_bridge.diagnosis.original import Original
from autobot_mcp_bridge.diagnosis.outcome import Outcome, Stage
from autobot_mcp_bridge.diagnosis.verdict import Verdict, as_keys
from autobot_mcp_bridge.model.death import DeathCause
from autobot_mcp_bridge.model.finding import Finding

MOST_TRIES = 60
# Seconds that each later try gets at least, and into how many parts what is left is divided.
LEAST, PARTS = 5.0, 6
# A slow server is waited for so many times longer than its definition says.
SLOWER = 4
_NO_FORK = "temporarily unavailable"
_NUMBERS = re.compile(r"\b[0-9a-fx]*[0-9][0-9a-f]*")


class OutOfTimeError(Exception):
    """The deadline has passed, or too many processes were started."""


class Search:
    """One search; `diagnose` is called once.

    Args:
        bench: starts the server.
        original: its unit.
        deadline: seconds for all of it, but for the last clean-up.
        tell: gets a line of progress before each try.
        relax: whether its sandbox may be relaxed, for the seconds of a try.
    """

    def __init__(
        self,
        bench: Bench,
        original: Original,
        deadline: float,
        tell: Callable[[str], None],
        *,
        relax: bool = True,
    ) -> None:
        self.tries = 0
        self.first: Outcome | None = None
        self._bench = bench
        self._original = original
        self._loop = asyncio.get_running_loop()
        self._by = self._loop.time() + deadline
        self._tell = tell
        self._may_relax = relax
        self._start = original.spec.timeouts.start

    @property
    def _left(self) -> float:
        return self._by - self._loop.time()

    async def diagnose(self) -> Verdict:
        """Find the cause."""
        try:
            verdict = await self._diagnose()
        except OutOfTimeError:
            said = self.first.said if self.first is not None else "its first try is not over"
            why = f"does not start ({said}), and the time was over before its cause was found"
            verdict = Verdict(Finding.UNDECIDED, why, advice="run doctor with a larger --deadline")
        return replace(verdict, outcome=self.first)

    async def _diagnose(self) -> Verdict:
        longer = min((SLOWER - 1) * self._start, self._left / 3)
        first = self.first = await self._try("as it is", (), self._start, longer)
        if first.works:
            return self._slow(first) if self._is_late(first) else Verdict("", _healthy(first))
        if first.stage is Stage.SETUP:
            # EAGAIN of fork(2): systemd sets the sandbox up within the server's own limit.
            if _NO_FORK in first.said.lower() and (found := await self._grown(changes.tasks)):
                return found
            why = f"cannot be set up by systemd: {first.said}"
            return Verdict(Finding.SETUP_FAILED, why, advice="mend what the step names")
        if first.cause is DeathCause.MEMORY and (found := await self._grown(changes.memory)):
            return found
        if first.flushed:
            return await self._buffered()
        if first.noise and (found := await self._noisy(first.noise)):
            return found
        if not self._may_relax:
            advice = "run doctor without --strict, which relaxes its sandbox to find out"
            return Verdict(Finding.UNDECIDED, f"does not start: {first.said}", advice=advice)
        return await self._relaxed(first)

    # ---- the server's own ways ----

    def _is_late(self, outcome: Outcome) -> bool:
        return outcome.seconds is not None and outcome.seconds > self._start

    def _slow(self, outcome: Outcome) -> Verdict:
        seconds = outcome.seconds or 0.0
        change = Change(
            Finding.SLOW_START,
            f"answers initialize after {seconds:.1f} s, and timeouts.start is {self._start:g} s",
            (),
            {"timeouts": {"start": f"{math.ceil(2 * seconds)}s"}},
        )
        return Verdict(Finding.SLOW_START, change.why, (change,))

    async def _buffered(self) -> Verdict:
        why, advice = wrapped.BUFFERED, wrapped.FLUSH
        for change in wrapped.flushing(self._original):
            if (await self._try(wrapped.named(change), change.lines)).works:
                return Verdict(change.code, why, (change,), "" if change.key else advice)
        # One that was about to answer when its stdin was closed is slow, and does not buffer.
        return await self._slower() or Verdict(Finding.STDOUT_BUFFERED, why, advice=advice)

    async def _slower(self) -> Verdict | None:
        within = min(SLOWER * self._start, self._left * 0.8)
        outcome = await self._try("for longer", (), within)
        return self._slow(outcome) if outcome.works else None

    async def _noisy(self, noise: str) -> Verdict | None:
        change = wrapped.filtered(self._original, noise)
        if not (await self._try("with what is no JSON left out", change.lines)).works:
            return None
        return Verdict(change.code, change.why, (change,), wrapped.STDERR)

    async def _grown(self, limit: Callable[[Original, int], Change]) -> Verdict | None:
        """By the smallest power of two that does."""
        factor = 2
        while factor <= changes.WIDE:
            change = limit(self._original, factor)
            if (await self._try(f"with {as_keys(change.key)}", change.lines)).works:
                return Verdict(change.code, change.why, (change,))
            factor *= 2
        return None

    # ---- its sandbox ----

    async def _relaxed(self, first: Outcome) -> Verdict:
        found = changes.candidates(self._original, first)
        free = await self._try("without its sandbox", changes.free(found))
        if not free.works:
            return await self._own_fault(first, free)
        for change in found:
            if change.fits(first) and (await self._try(_relaxing(change), change.lines)).works:
                return await self._narrowed([change])
        if not await self._works(found):
            why = "starts without its sandbox only"
            return Verdict(Finding.SANDBOX, why, advice="see its last words for what it misses")
        return await self._narrowed(await least(found, self._works))

    async def _works(self, some: Sequence[Change]) -> bool:
        lines = [line for change in some for line in change.lines]
        return (await self._try(f"with {len(some)} relaxed", lines)).works

    async def _narrowed(self, needed: list[Change]) -> Verdict:
        narrower = Narrower(self._original, self._try_lines)
        exact: list[Change] = []
        for index, change in enumerate(needed):
            beside = [line for other in (*exact, *needed[index + 1 :]) for line in other.lines]
            try:
                exact.append(await narrower.narrow(change, beside))
            except OutOfTimeError:
                exact.append(change)
        if len(exact) == 1:
            return Verdict(exact[0].code, exact[0].why, tuple(exact))
        why = f"needs {len(exact)} things at once: it {'; it '.join(c.why for c in exact)}"
        return Verdict(Finding.SANDBOX, why, tuple(exact))

    async def _own_fault(self, first: Outcome, free: Outcome) -> Verdict:
        # It reads at once, and may be slow nevertheless.
        if first.silent and not first.unread and (slow := await self._slower()):
            return slow
        if free.cause is DeathCause.EXEC:
            why = f"cannot be executed: {free.said}"
            return Verdict(Finding.PROGRAM_UNUSABLE, why, advice="mend the program, or its mode")
        return self._of_network(first, free) or Verdict(
            Finding.SERVER_FAULT, f"fails by its own fault, {_as_well(first, free)}"
        )

    def _of_network(self, first: Outcome, free: Outcome) -> Verdict | None:
        """For a server whose words ask for a network, which this host may not have, either."""
        network, instance = self._original.spec.network, self._original.spec.instance
        if network.mode == "names" and changes.asks_the_egress(first):
            why = f"fails at what the egress proxy does not let through: {_said(first)}"
            journal = f"journalctl -t mcp-bridge-egress MCP_INSTANCE={instance}"
            return Verdict(
                Finding.NETWORK_NEEDED,
                why,
                advice=f"see which host and why with {journal}; network.allow names those it may reach",
            )
        if not changes.asks_for_a_network(first):
            return None
        advice = (
            f"it asks for a network, and its network.mode is {network.mode}: "
            "see whether it should have another, and whether this host reaches what it asks for"
        )
        return Verdict(Finding.SERVER_FAULT, f"fails {_as_well(first, free)}", advice=advice)

    # ---- trying ----

    async def _try_lines(self, what: str, lines: Sequence[str]) -> bool:
        return (await self._try(what, lines)).works

    async def _try(
        self, what: str, lines: Sequence[str], within: float | None = None, longer: float = 0.0
    ) -> Outcome:
        if self._left <= 0 or self.tries >= MOST_TRIES:
            raise OutOfTimeError
        if within is None:
            within = min(self._start, max(LEAST, self._left / PARTS))
        self.tries += 1
        self._tell(f"try {self.tries}: {what}")
        try:
            async with asyncio.timeout(self._left):
                return await self._bench.attempt(lines, within, longer)
        except TimeoutError:
            raise OutOfTimeError from None


def _as_well(first: Outcome, free: Outcome) -> str:
    """Both failures, or one where they are the same but for numbers, such as a time."""
    said, then = _said(first), _said(free)
    if _NUMBERS.sub("", said) == _NUMBERS.sub("", then):
        return f"without its sandbox as well: {said}"
    return f"without its sandbox as well, though otherwise: {then}; within it: {said}"


def _said(outcome: Outcome) -> str:
    last = outcome.words[-1] if outcome.words else ""
    if not last or last in outcome.said:
        return outcome.said
    return f"{outcome.said}; it last said: {last}"


def _healthy(outcome: Outcome) -> str:
    number = outcome.tools
    tools = "" if number is None else f" and lists {number} tool{'' if number == 1 else 's'}"
    return f"starts: it answers initialize after {outcome.seconds or 0.0:.2f} s{tools}"


def _relaxing(change: Change) -> str:
    return f"with {', '.join(line[:60] for line in change.lines[:2])}"
