"""A good server that is called the whole time, to see whether a bad one harms it."""

import asyncio
from typing import Any, Self

from support.bridge import Bridge
from support.client import text_of
from support.waiting import PATIENCE, WITHIN, eventually

READY_WITHIN = 30.0 * PATIENCE  # seconds for the good server's first answers


class Neighbour:
    """Calls a good server without a pause and keeps every answer that is not right."""

    def __init__(self, bridge: Bridge, instance: str = "good") -> None:
        self.bridge = bridge
        self.calls = 0
        self.faults: list[Any] = []
        self.instance = instance
        self.pid = ""
        self.ready = asyncio.Event()

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(self.work())
        async with asyncio.timeout(READY_WITHIN):
            await self.ready.wait()
        return self

    async def work(self) -> None:
        async with (
            self.bridge.session(self.instance) as session,
            self.bridge.modern(self.instance) as modern,
        ):
            self.pid = await session.text("pid")
            while True:
                for client in (session, modern):
                    nonce = f"nonce {self.calls}"
                    answer = await client.call("echo", {"text": nonce}, within=WITHIN * PATIENCE)
                    if "result" not in answer or text_of(answer) != nonce:
                        self.faults.append(answer)
                    self.calls += 1
                self.ready.set()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        seen = self.calls
        if kind is None and not self.task.done():
            await eventually(lambda: self.task.done() or self.calls > seen + 2)
        failed = self.task.exception() if self.task.done() else None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        assert failed is None, failed
        assert not self.faults, self.faults[:3]
        async with self.bridge.session(self.instance) as session:
            assert await session.text("pid") == self.pid
