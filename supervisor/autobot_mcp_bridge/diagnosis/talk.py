"""The first words with a process, as the proxy says them: initialize, then tools/list."""

import asyncio
import fcntl
import struct
import termios
from dataclasses import dataclass, field
from typing import Any

from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.channels.ends import death_of
from autobot_mcp_bridge.channels.greeting import OWN_META, WrongEraError, greet, unless_ended
from autobot_mcp_bridge.diagnosis.outcome import Outcome, Stage
from autobot_mcp_bridge.model.death import Death
from autobot_mcp_bridge.model.errors import CallError
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.versions import MODERN, Era
from autobot_mcp_bridge.runtimes.base import Process

# So long a server that has been asked in vain may take to end, once its stdin is closed.
FLUSH_WITHIN = 3.0
# A server that has answered is watched so long: some end right after.
STEADY = 0.3
LIST_WITHIN = 20.0


@dataclass(slots=True)
class Talk:
    """One conversation; `run` says it all."""

    process: Process
    spec: ServerSpec
    era: Era | None
    tools: int | None = None
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, within: float, longer: float) -> Outcome:
        """Say the first words, and let go of the process's pipes.

        Args:
            within: seconds for the initialize answer.
            longer: seconds more for a server that has not even read the question.

        Raises:
            WrongEraError: a fresh process must be spoken to in another era.
        """
        channel = await Channel.open(
            self.process,
            self.spec.caps,
            attention=asyncio.Event(),
            on_message=lambda _message, _line: None,
            on_dropped=lambda _why: None,
        )
        channel.first_answer = self.answered.set
        try:
            return await self._said(channel, within, longer)
        finally:
            channel.close()

    async def _said(self, channel: Channel, within: float, longer: float) -> Outcome:
        loop = asyncio.get_running_loop()
        began = loop.time()
        greeting = asyncio.create_task(
            unless_ended(channel, greet(channel, self.era, within + longer))
        )
        try:
            await asyncio.wait({greeting}, timeout=within)
            unread = not greeting.done() and _unread(self.process.stdin_fd)
            if unread and longer:
                await asyncio.wait({greeting}, timeout=longer)
            if not greeting.done():
                return await self._in_vain(channel, loop.time() - began, unread=unread)
            hello = greeting.result()
        except CallError as error:
            return await self._refused(channel, Stage.INITIALIZE, error)
        finally:
            greeting.cancel()
            await asyncio.gather(greeting, return_exceptions=True)
        if hello is None:
            return await self._ended(channel, Stage.INITIALIZE)
        seconds = loop.time() - began
        try:
            if "tools" in hello["capabilities"]:
                self.tools = await self._listed(channel, hello)
            async with asyncio.timeout(STEADY):
                await channel.ended.wait()
            return await self._ended(channel, Stage.TOOLS)
        except TimeoutError:
            noise = channel.process.redact(channel.noise)
            return Outcome(Stage.READY, noise=noise, seconds=seconds, tools=self.tools)
        except CallError as error:
            return await self._refused(channel, Stage.TOOLS, error)

    async def _listed(self, channel: Channel, hello: dict[str, Any]) -> int | None:
        modern = MODERN in hello.get("supportedVersions", ())
        params = {"_meta": {**OWN_META}} if modern else {}
        message = {"jsonrpc": "2.0", "method": "tools/list", "params": params}
        call = channel.request(message, LIST_WITHIN)
        answer = await unless_ended(channel, call.result())
        if answer is None:
            return None
        tools = answer.parsed().get("result", {}).get("tools")
        return len(tools) if isinstance(tools, list) else None

    async def _in_vain(self, channel: Channel, waited: float, *, unread: bool) -> Outcome:
        """It has not answered: does it, when there is nothing more to come?"""
        noise = channel.process.redact(channel.noise)
        self.answered.clear()
        channel.first_answer = self.answered.set
        channel.close_stdin()
        try:
            async with asyncio.timeout(FLUSH_WITHIN):
                await channel.ended.wait()
        except TimeoutError:
            pass  # it passes over the end of its stdin, which is its own matter
        said = f"no answer to initialize within {waited:.3g} s"
        if unread:
            said += ", nor has it read the question"
        return Outcome(
            Stage.INITIALIZE,
            said,
            noise=noise or channel.process.redact(channel.noise),
            unread=unread,
            flushed=self.answered.is_set(),
        )

    async def _refused(self, channel: Channel, stage: Stage, error: CallError) -> Outcome:
        if channel.ended.is_set() or not channel.usable:
            return await self._ended(channel, stage)
        noise = channel.process.redact(channel.noise)
        return Outcome(stage, str(error), noise=noise, tools=self.tools)

    async def _ended(self, channel: Channel, stage: Stage) -> Outcome:
        death: Death = await death_of(channel)
        noise = channel.process.redact(channel.noise)
        return Outcome(stage, death.describe(), death, noise, death.last_words, tools=self.tools)


def _unread(stdin_fd: int) -> bool:
    """Whether bytes wait in the pipe (FIONREAD of pipe(7))."""
    try:
        raw = fcntl.ioctl(stdin_fd, termios.FIONREAD, b"\0" * 4)
    except OSError:
        return False  # its other end is closed
    return bool(struct.unpack("i", raw)[0])


def next_era(outcome: Outcome | WrongEraError, era: Era | None) -> Era | None:
    """The era in which a fresh process is to be spoken to; None: the outcome counts."""
    if isinstance(outcome, WrongEraError):
        return outcome.era or Era.HANDSHAKE
    # A server that ends at a question of the other era has not failed yet.
    asked = outcome.stage >= Stage.INITIALIZE
    if era is None and asked and not outcome.works and outcome.death is not None:
        return Era.HANDSHAKE
    return None
