"""The chain: each line carries the digest of the line before and its own.

A line is one JSON object, and what is hashed are its very bytes: all of it but its last member,
`"hash"`, which is cut off together with the comma before. Nobody has to write JSON a second time in
the same way to check it.
"""

import hashlib
from dataclasses import dataclass
from typing import Any, Self

import orjson

# What the first line of a chain names as the digest before it.
GENESIS = "0" * 64
_MARK = b',"hash":"'
_TAIL = len(_MARK) + 64 + 2  # …"}


@dataclass(frozen=True, slots=True)
class Link:
    """One line, read again.

    Attributes:
        seq: its number in the chain, from 1.
        prev: the digest that it names as that of the line before.
        digest: its own.
        intact: whether its bytes are those that the digest is of.
    """

    seq: int
    prev: str
    digest: str
    intact: bool

    @classmethod
    def read(cls, line: bytes) -> Self | None:
        """A line without its newline; None for what was never one."""
        at = len(line) - _TAIL
        if at <= 0 or line[at : at + len(_MARK)] != _MARK:
            return None
        try:
            record = orjson.loads(line)
        except ValueError:
            return None
        match record:
            case {"seq": int(seq), "prev": str(prev), "hash": str(digest)}:
                own = hashlib.sha256(line[:at] + b"}").hexdigest()
                return cls(seq, prev, digest, own == digest)
        return None


@dataclass(slots=True)
class Chain:
    """Where a chain goes on: number and digest of its last line."""

    seq: int = 0
    digest: str = GENESIS

    def seal(self, record: dict[str, Any]) -> bytes:
        """The record as the next line, with its newline.

        Raises:
            TypeError: something in it is no JSON; the chain has not moved.
        """
        record["seq"] = self.seq + 1
        record["prev"] = self.digest
        body = orjson.dumps(record)
        digest = hashlib.sha256(body).hexdigest()
        self.seq += 1
        self.digest = digest
        return b"".join((body[:-1], _MARK, digest.encode(), b'"}\n'))
