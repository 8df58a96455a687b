"""What a probe is: a few raw requests, what was seen of the answers, and whether that is right.

The conformance suite says whether its scenarios pass. Probes say which status, code or routing came
back, for rules that the suite leaves out. One that the specification leaves open is not judged.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from support.client import Client, Modern, Session
from support.waiting import PATIENCE, eventually
from support.wire import Dial, Response, Stream

WITHIN = 10.0 * PATIENCE  # seconds for one exchange
PROBE_TIMEOUT = 40.0 * PATIENCE  # seconds for one probe
# What a probe that meets something unforeseen ends with; it is then what was seen.
FAULTS = (AssertionError, EOFError, LookupError, OSError, TypeError, ValueError)
LISTEN: dict[str, Any] = {"method": "GET", "headers": {"Accept": "text/event-stream"}}
Right = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Peer:
    """One endpoint, and how its network is reached."""

    url: str
    token: str
    dial: Dial | None = None

    @asynccontextmanager
    async def session(self, **options: Any) -> AsyncIterator[Session]:
        """A session of the handshake era, deleted at the end."""
        client = Session(self.url, self.token, **options)
        client.dial = self.dial
        async with client:
            yield client
            if client.session is not None:
                with suppress(*FAULTS):
                    await client.delete()

    def stranger(self) -> Session:
        """A client of the handshake era that has not initialized."""
        client = Session(self.url, self.token, opened=False)
        client.dial = self.dial
        return client

    def modern(self) -> Modern:
        client = Modern(self.url, self.token)
        client.dial = self.dial
        return client


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe.

    Attributes:
        right: whether what was seen is right; None where the specification leaves it open.
        era: what the server behind the endpoint must speak.
        sessions: the only mode that it concerns; empty: both.
        shows: the requirements that it shows.
    """

    ident: str
    title: str
    right: Right | None
    era: str
    sessions: str
    shows: tuple[str, ...]
    run: Callable[[Peer], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Seen:
    probe: Probe
    what: str

    @property
    def verdict(self) -> str:
        if self.probe.right is None:
            return ""
        return "ok" if self.probe.right(self.what) else "WRONG"

    def __str__(self) -> str:
        return f"{self.verdict:5} {self.probe.ident} {self.probe.title}\n          {self.what}"


PROBES: dict[str, Probe] = {}


def probe(
    ident: str,
    title: str,
    right: str | Right | None = None,
    *,
    era: str = "both",
    sessions: str = "",
    shows: str = "",
) -> Callable[[Callable[[Peer], Awaitable[str]]], Callable[[Peer], Awaitable[str]]]:
    """Make a probe of a coroutine function.

    Args:
        ident: its name: L for the handshake era, M for the modern one, S for the server's.
        title: what it looks at, and what the specification says of that.
        right: what is right, or the one observation that is; None where that is open.
        era: what the server must speak.
        sessions: the only mode that it concerns.
        shows: ids of tests/requirements.py, with spaces between them.
    """

    def register(function: Callable[[Peer], Awaitable[str]]) -> Callable[[Peer], Awaitable[str]]:
        judge = right.__eq__ if isinstance(right, str) else right
        assert ident not in PROBES, ident
        PROBES[ident] = Probe(ident, title, judge, era, sessions, tuple(shows.split()), function)
        return function

    return register


def starts(*prefixes: str) -> Right:
    return lambda seen: seen.startswith(prefixes)


@asynccontextmanager
async def opened(client: Client, message: Any = None, **options: Any) -> AsyncIterator[Stream]:
    """The stream of an answer, closed at the end."""
    stream = await client.open_stream(message, **options)
    try:
        yield stream
    finally:
        await stream.close()


async def see(probes: Iterable[Probe], peer: Peer) -> list[Seen]:
    """Run probes one after the other; what one of them stumbles over is what it saw."""
    found = []
    for one in probes:
        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                what = await one.run(peer)
        except FAULTS as fault:
            what = f"error {type(fault).__name__}: {str(fault)[:120]}"
        found.append(Seen(one, what))
    return found


# What probes say of an answer


def kind(response: Any) -> str:
    """The form of a body; for one that is read event by event, whether it is an event stream."""
    content = response.header("Content-Type") or ""
    if "event-stream" in content:
        return "sse"
    if not getattr(response, "body", b"").strip():
        return "empty"
    return "json" if "json" in content else "text"


def code(response: Response) -> int | None:
    for message in response.messages if kind(response) in ("sse", "json") else ():
        if isinstance(message, dict) and "error" in message:
            return int(message["error"]["code"])
    return None


def short(response: Response) -> str:
    """Status, kind of body, and the error's code if there is one: `400 json -32600`."""
    found = code(response)
    return f"{response.status} {kind(response)}" + ("" if found is None else f" {found}")


def answer(response: Response, ident: object) -> dict[str, Any]:
    """The answer with this id; empty if there is none."""
    for message in response.messages if kind(response) in ("sse", "json") else ():
        if isinstance(message, dict) and message.get("id") == ident and "method" not in message:
            return message
    return {}


def outcome(response: Response, ident: object) -> str:
    """What a tools/call came to."""
    found = answer(response, ident)
    if "error" in found:
        return f"{response.status} error {found['error']['code']}"
    if "result" in found:
        failed = found["result"].get("isError")
        return f"{response.status} {'tool-error' if failed else 'ok'}"
    return f"{short(response)} no-answer"


def said(found: dict[str, Any]) -> str:
    """All text of a tool's answer."""
    content = (found.get("result") or {}).get("content") or []
    return "".join(part.get("text", "") for part in content)


def count(response: Response, method: str) -> int:
    return sum(message.get("method") == method for message in response.messages)


async def slept(client: Client, tag: str, state: str) -> bool:
    """Whether the server's sleep with this tag comes to this state."""

    async def is_so() -> bool:
        return f'"{tag}": "{state}"' in await client.text("gw_sleeps", within=WITHIN)

    try:
        return await eventually(is_so, within=WITHIN)
    except AssertionError:
        return False
