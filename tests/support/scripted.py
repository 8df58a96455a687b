"""Servers in the test's own loop: a runtime whose processes answer as they are told."""

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any, Self

from autobot_mcp_bridge.channels.hooks import Hooks
from autobot_mcp_bridge.channels.instance import Instance
from autobot_mcp_bridge.model.death import Death, DeathCause
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.runtimes.base import Command

# What a script says to a request: a result or an error as members, bytes for a line, None for
# nothing, or EXITS.
EXITS = object()
Script = Callable[[str, dict[str, Any]], Any]


class ScriptedProcess:
    """Two pipes, and what reads one and writes the other."""

    invocation = "0" * 32
    pid = 1

    def __init__(self, script: Script) -> None:
        self.heard: list[str] = []
        self._script = script
        self._stdin, self.stdin_fd = os.pipe()
        self.stdout_fd, self._stdout = os.pipe()
        self._death: asyncio.Future[Death] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(self._stdin, "rb", buffering=0)
        )
        status = 0
        while line := await reader.readline():
            message = json.loads(line)
            self.heard.append(message["method"])
            said = self._script(message["method"], message)
            if said is EXITS:
                status = 1
                break
            if said is not None and "id" in message:
                self.say(said, message["id"])
        transport.close()
        self._end(Death(DeathCause.EXIT, status))

    def say(self, said: Any, ident: Any = None) -> None:
        if not isinstance(said, bytes):
            said = json.dumps({"jsonrpc": "2.0", "id": ident, **said}).encode()
        os.write(self._stdout, said + b"\n")

    def _end(self, death: Death) -> None:
        if not self._death.done():
            os.close(self._stdout)
            self._death.set_result(death)

    def redact(self, text: str) -> str:
        return text

    async def ended(self) -> Death:
        return await asyncio.shield(self._death)

    def has_exited(self) -> bool:
        return self._death.done()

    async def stop(self, grace: float) -> Death:
        del grace
        return await asyncio.shield(self._death)

    def greeted(self, hello: dict[str, Any]) -> None: ...

    def tear(self, *, torn: bool) -> None: ...

    def leave(self, rest: bytes | None) -> None: ...


class ScriptedRuntime:
    """Starts the scripts one after the other; the last one again and again."""

    name = "scripted"

    def __init__(self, *scripts: Script) -> None:
        self.scripts = list(scripts)
        self.processes: list[ScriptedProcess] = []

    @property
    def heard(self) -> list[list[str]]:
        """What each process was told, in its order."""
        return [process.heard for process in self.processes]

    async def adopt(self, spec: ServerSpec) -> None: ...

    async def start(self, spec: ServerSpec, command: Command, slot: str = "") -> ScriptedProcess:
        del spec, command, slot
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        process = ScriptedProcess(script)
        self.processes.append(process)
        return process

    def view(self, spec: ServerSpec) -> dict[str, Any]:
        return spec.process_view(units=False)


class Kept:
    """An instance of a scripted server that runs within `async with`."""

    def __init__(self, *scripts: Script, **settings: Any) -> None:
        self.runtime = ScriptedRuntime(*scripts)
        self.crashes: list[Death] = []
        self.hooks = Hooks(
            started=lambda: None, crashed=self.crashes.append, dropped=lambda _reason: None
        )
        self.spec = spec_of(**settings)

    async def __aenter__(self) -> Self:
        self.instance = Instance(self.spec, self.runtime, _command, self.hooks, 64)  # type: ignore[arg-type]
        self._task = asyncio.create_task(self.instance.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.instance.dismiss()
        await self._task

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def again(self) -> None:
        """End the process and have the next one started."""
        self.instance.stop()
        while self.instance.process is not None:
            await asyncio.wait_for(self.runtime.processes[-1].ended(), 10)
            self.instance.stop()
        self.instance.allow()
        await self.instance.ready()


def spec_of(**settings: Any) -> ServerSpec:
    return ServerSpec.model_validate({"name": "files", "command": ["/bin/true"], **settings})


def _command(spec: ServerSpec) -> Command:
    return Command(argv=tuple(spec.command), env={})
