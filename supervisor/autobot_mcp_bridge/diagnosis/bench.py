"""Where a server is tried: on diagnostic instances, or without systemd as a child process."""

import asyncio
import subprocess
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
from autobot_mcp_bridge.diagnosis.talk import Talk, next_era
from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.death import Death, DeathCause
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.versions import Era
from autobot_mcp_bridge.runtimes.base import Runtime, StartError
from autobot_mcp_bridge.runtimes.systemd import handover
from autobot_mcp_bridge.units.instances import service_of
from autobot_mcp_bridge.units.manager import Manager

# From the connection to the hello: the set-up of the sandbox, on a busy machine.
HANDOVER_WITHIN = 20.0
# A server that ends at the end of its stdin does so within this.
GRACE = 1.0
JOURNAL_WITHIN = 5.0
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
            asyncio.to_thread(stack.enter_context, sample(self._original, lines, self._manager))
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
                handed = await handover.fetch(made.socket)
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

    async def _set_up(self, made: Sample) -> Outcome:
        """What systemd says of a set-up that failed, which is the step and its own line."""
        invocation = await asyncio.to_thread(newest_invocation, made.instance)
        if invocation is None:
            return Outcome(Stage.SETUP, "systemd could not set up its unit")
        death = await death_of_record(made.instance, invocation, self._redact, began=False)
        line = await asyncio.to_thread(_manager_line, service_of(made.instance))
        said = f"{death.describe()}: {self._redact(line)}" if line else death.describe()
        return Outcome(Stage.SETUP, said, death)


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


def _manager_line(unit: str) -> str:
    """The manager's last line about the unit that names a failed step; "" without one. Blocks."""
    words = ["journalctl", "--quiet", "--no-pager", "--output=cat", "--lines=50", "_PID=1"]
    try:
        done = subprocess.run(
            [*words, f"UNIT={unit}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=JOURNAL_WITHIN,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    told = [line for line in lines if "Failed" in line and "step" not in line]
    return told[-1].strip() if told else ""
