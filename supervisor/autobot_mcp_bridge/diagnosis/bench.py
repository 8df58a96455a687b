"""Where a server is tried: on diagnostic instances, or without systemd as a child process."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Protocol

from autobot_mcp_bridge.channels.greeting import WrongEraError
from autobot_mcp_bridge.diagnosis.original import Original
from autobot_mcp_bridge.diagnosis.outcome import Outcome, Stage
from autobot_mcp_bridge.diagnosis.process import (
    TriedProcess,
    death_of_record,
    newest_invocation,
)
from autobot_mcp_bridge.diagnosis.sample import Sample, sample
from autobot_mcp_bridge.diagnosis.setup_failure import failed_step
from autobot_mcp_bridge.diagnosis.talk import FLUSH_WITHIN, LIST_WITHIN, Talk, next_era
from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.death import Death, DeathCause
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.versions import Era
from autobot_mcp_bridge.runtimes.base import Runtime, StartError
from autobot_mcp_bridge.runtimes.systemd import handover
from autobot_mcp_bridge.runtimes.systemd.handover import Handed
from autobot_mcp_bridge.units.instances import service_of
from autobot_mcp_bridge.units.manager import Manager

# From the connection to the hello: the set-up of the sandbox, on a busy machine.
HANDOVER_WITHIN = 20.0
# A server that ends at the end of its stdin does so within this.
GRACE = 1.0
# What a process may take beside its first answer, and is ended after by systemd, should nobody do it
# any more: the hand-over on a busy machine, tools/list, its end.
BESIDE = HANDOVER_WITHIN + LIST_WITHIN + FLUSH_WITHIN + 5 * GRACE
# Between two looks for a set-up that failed.
PAUSE = 0.2
# Processes of one try: the question of its era, and then one in each era.
MOST_PROCESSES = 3


class Bench(Protocol):
    """Starts the server once more, changed a little, and says what came of it."""

    era: Era | None

    async def attempt(self, lines: Sequence[str], within: float, longer: float = 0.0) -> Outcome:
        """One try with these lines of [Service] after all others; nothing of it is left.

        `within` and `longer` are seconds, as in `Talk.run`. A cancelled one leaves nothing, either.

        Raises:
            SystemctlError: systemd refused to make the instance.
        """
        ...


class UnitBench:
    """By units. `era` is learnt by the first try."""

    def __init__(self, original: Original, manager: Manager, redact: Callable[[str], str]) -> None:
        self.era: Era | None = None
        self._original = original
        self._manager = manager
        self._redact = redact

    async def attempt(self, lines: Sequence[str], within: float, longer: float = 0.0) -> Outcome:
        stack = ExitStack()
        making = asyncio.ensure_future(
            asyncio.to_thread(
                stack.enter_context,
                sample(self._original, lines, self._manager, within + longer + BESIDE),
            )
        )
        try:
            made = await asyncio.shield(making)
            for _ in range(MOST_PROCESSES):
                said = await self._once(made, within, longer)
                era = next_era(said, self.era)
                if era is None:
                    break
                self.era = era
            if isinstance(said, WrongEraError):
                return Outcome(Stage.INITIALIZE, "it keeps to no era of the protocol")
            return said
        finally:
            # Threads cannot be cancelled: the one that makes it is waited for.
            await asyncio.wait({making})
            await asyncio.shield(asyncio.to_thread(stack.close))

    async def _once(self, made: Sample, within: float, longer: float) -> Outcome | WrongEraError:
        try:
            async with asyncio.timeout(HANDOVER_WITHIN):
                handed = await self._handed(made)
        except TimeoutError:
            return Outcome(Stage.SETUP, f"no hello of its launcher within {HANDOVER_WITHIN:g} s")
        except handover.LaunchError as error:
            detail = self._redact(str(error))
            return Outcome(Stage.START, detail, Death(DeathCause.EXEC, detail=detail))
        except handover.GivenUpError:
            return await self._set_up(made)
        except handover.HandoverError as error:
            return Outcome(Stage.SETUP, str(error))
        process = TriedProcess(handed, made.instance, self._redact)
        try:
            outcome = await Talk(process, self._original.spec, self.era).run(within, longer)
        except WrongEraError as error:
            await self._over(made, process)
            return error
        else:
            words = await self._over(made, process)
            return outcome if outcome.words else replace(outcome, words=words)
        finally:
            process.forget()

    async def _over(self, made: Sample, process: TriedProcess) -> tuple[str, ...]:
        """End the service, so that the next process is a fresh one; its last words."""
        try:
            async with asyncio.timeout(GRACE):
                return (await process.ended()).last_words
        except TimeoutError:
            await asyncio.to_thread(self._manager.stop, service_of(made.instance))
            return (await process.ended()).last_words

    async def _handed(self, made: Sample) -> Handed:
        """The pipes; or that its set-up fails, which systemd may try again and again for long.

        Raises:
            HandoverError: there are none.
        """
        before = await asyncio.to_thread(newest_invocation, made.instance)
        fetching = asyncio.create_task(handover.fetch(made.socket))
        try:
            while True:
                await asyncio.wait({fetching}, timeout=PAUSE)
                if not fetching.done() and await self._has_failed(made, before):
                    # Without a hello; or the launcher's error is on its way.
                    await asyncio.wait({fetching}, timeout=GRACE)
                    if not fetching.done():
                        raise handover.GivenUpError("the unit ended before it ran")
                if fetching.done():
                    return fetching.result()
        finally:
            fetching.cancel()
            await asyncio.gather(fetching, return_exceptions=True)

    async def _has_failed(self, made: Sample, before: str | None) -> bool:
        """Whether an invocation has ended; a missing directory keeps its record from being written."""
        if await asyncio.to_thread(newest_invocation, made.instance) != before:
            return True
        facts = await asyncio.to_thread(self._manager.facts, service_of(made.instance))
        return before is None and facts.result not in {"", "success"}

    async def _set_up(self, made: Sample) -> Outcome:
        """The step that failed, and how systemd ended; of all tries of one connection one."""
        step = await asyncio.to_thread(failed_step, self._original, service_of(made.instance))
        invocation = await asyncio.to_thread(newest_invocation, made.instance)
        if invocation is None:
            said = step or "its unit ends before its program runs"
            return Outcome(Stage.SETUP, self._redact(said), Death(DeathCause.RESOURCES))
        death = await death_of_record(made.instance, invocation, self._redact, began=False)
        return Outcome(Stage.SETUP, self._redact(step) or death.describe(), death)


class ChildBench:
    """By a runtime without units: nothing of the sandbox is there, and nothing can be relaxed."""

    def __init__(self, spec: ServerSpec, command: Command, runtime: Runtime) -> None:
        self.era: Era | None = None
        self._spec = spec
        self._command = command
        self._runtime = runtime

    async def attempt(self, lines: Sequence[str], within: float, longer: float = 0.0) -> Outcome:
        del lines
        said: Outcome | WrongEraError = Outcome(Stage.SETUP)
        for _ in range(MOST_PROCESSES):
            said = await self._once(within, longer)
            if (era := next_era(said, self.era)) is None:
                break
            self.era = era
        if isinstance(said, WrongEraError):
            return Outcome(Stage.INITIALIZE, "it keeps to no era of the protocol")
        return said

    async def _once(self, within: float, longer: float) -> Outcome | WrongEraError:
        try:
            process = await self._runtime.start(self._spec, self._command)
        except StartError as error:
            return Outcome(Stage.START, str(error), error.death)
        try:
            return await Talk(process, self._spec, self.era).run(within, longer)
        except WrongEraError as error:
            return error
        finally:
            await process.stop(GRACE)
