"""A stdio MCP server's process, spoken to by hand."""

import asyncio
import json
from typing import Any

from support.waiting import PATIENCE

WITHIN = 30.0 * PATIENCE  # seconds for one answer, a start of Python included


class ByHand:
    """Its pipes; whoever has started it ends it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)

    def send(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def read(self) -> Any:
        """The next message; None: there are no more."""
        assert self.process.stdout is not None
        async with asyncio.timeout(WITHIN):
            line = await self.process.stdout.readline()
        return json.loads(line) if line else None

    async def ask(self, method: str, params: Any = None, ident: Any = 1) -> Any:
        self.send(id=ident, method=method, params=params or {})
        return await self.read()

    async def initialize(self) -> Any:
        info = {"name": "tests", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        return await self.ask("initialize", params)

    async def end(self) -> tuple[int, str]:
        """Close stdin: status and stderr."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        async with asyncio.timeout(WITHIN):
            said = await self.process.stderr.read()
            return await self.process.wait(), said.decode()
