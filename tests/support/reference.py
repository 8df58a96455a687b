"""The Python SDK's reference server as a process of its own, which can be killed and come back."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Self

from support.issuer import free_port
from support.waiting import PATIENCE, eventually

SCRIPT = Path(__file__).resolve().parent.parent / "servers" / "reference.py"
START_WITHIN = 30.0  # seconds until it listens: imports, mostly
END_WITHIN = 10.0 * PATIENCE


class Reference:
    """`async with Reference() as reference`: at `reference.url`, on one port for its whole life."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(SCRIPT), str(self.port)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
        )

        async def listens() -> bool:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                return False
            writer.close()
            return True

        await eventually(listens, within=START_WITHIN, what="the reference server")

    async def kill(self) -> None:
        """SIGKILL, and its end."""
        if self._process is None or self._process.returncode is not None:
            return
        self._process.kill()
        async with asyncio.timeout(END_WITHIN):
            await self._process.wait()
