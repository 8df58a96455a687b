"""A client whose connections are cut at any byte, and which comes back each time."""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from support.client import Session
from support.wire import WITHIN, Stream


@dataclass(slots=True)
class Seen:
    """What came over all connections of one stream."""

    ids: list[str] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    cuts: int = 0
    last: str | None = None

    def take(self, text: bytes) -> None:
        """The events that are whole; what follows the last empty line was lost."""
        for block in text.replace(b"\r\n", b"\n").split(b"\n\n")[:-1]:
            fields = dict(
                line.split(": ", 1) if ": " in line else (line.rstrip(":"), "")
                for line in block.decode().split("\n")
                if not line.startswith(":")
            )
            if "id" in fields:
                self.last = fields["id"]
            if data := fields.get("data"):
                self.ids.append(fields["id"])
                self.messages.append(json.loads(data))


async def cut_at(stream: Stream, most: int, events: int) -> bytes:
    """The first `most` bytes of a stream's body, or fewer if it has `events` in them; then a reset."""
    text = b""
    async with asyncio.timeout(WITHIN):
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while len(text) < most and text.count(b"}\n\n") < events:
                if not (piece := await stream.piece()):
                    break
                text += piece
    stream.reset()
    return text[:most]


async def read_through_cuts(session: Session, stream: Stream, random: Random, until: int) -> Seen:
    """Read a stream up to its `until`th message, over as many connections as it takes.

    A cut before the first id would lose the stream: the first is never as early as that.
    """
    seen = Seen()
    first = 120  # bytes of the event without data that each stream begins with, at most
    while True:
        most = first + random.randrange(600)
        seen.take(await cut_at(stream, most, until - len(seen.messages)))
        if len(seen.messages) >= until:
            return seen
        seen.cuts += 1
        first = 0
        stream = await session.listen(after=seen.last)
        assert stream.status == 200, seen
