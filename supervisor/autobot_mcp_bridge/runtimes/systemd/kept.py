"""The pipes of running units, held by systemd too, so that the servers outlive the proxy.

Both ends of a channel are stored as soon as they have been handed over, in one message and under
one name, the invocation's. Which is which is told by the way it was opened: the order of equal
names is undefined (252 and 257, measured). systemd lets go of one by itself when its other end is
closed. The names are short because all of them come in one variable, which may have 128 KiB
(execve(2), MAX_ARG_STRLEN): FileDescriptorStoreMax= of the proxy's unit stays below that.
"""

import base64
import fcntl
import hashlib
import os
import re
import select
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.runtimes.systemd.handover import Handed
from autobot_mcp_bridge.supervision.journal import Memory, Store

# Kinds of values, each by instance and invocation.
_CHANNEL = "channel"
_REST = "rest"
_TORN = "torn"
_INVOCATION = re.compile(r"[0-9a-f]{32}")


@dataclass(slots=True)
class Left:
    """A channel as the proxy before has left it; the descriptors belong to whoever has it.

    Attributes:
        hello: the initialize result; None when it did not come so far.
        view: fingerprint of the definition that the process was started from.
        rest: what stdout has said of a line.
        torn: whether stdin may have got a part of a line only.
    """

    handed: Handed
    hello: dict[str, Any] | None = None
    view: str = ""
    rest: bytes = b""
    torn: bool = False

    @property
    def ended(self) -> bool:
        """Whether nobody holds the other end of one of the pipes any more."""
        poll = select.poll()
        poll.register(self.handed.stdin_fd, 0)
        poll.register(self.handed.stdout_fd, 0)
        return bool(poll.poll(0))


@dataclass(slots=True)
class KeptPipes:
    """What is stored for the next proxy, and what the one before has left.

    Attributes:
        broken: invocations of which it has not left all that is needed.
    """

    store: Store
    memory: Memory
    broken: list[str] = field(default_factory=list)
    _pairs: dict[str, Handed] = field(default_factory=dict)

    def find(self, stored: Mapping[str, list[int]]) -> None:
        """Take over the pipes among what the proxy before has left; what is no pair is closed."""
        for invocation, descriptors in stored.items():
            if not _INVOCATION.fullmatch(invocation):
                continue
            handed = _pair(invocation, descriptors)
            if handed is not None:
                self._pairs[invocation] = handed
                continue
            for descriptor in descriptors:
                os.close(descriptor)
            self.store.remove(invocation)
            self.broken.append(invocation)

    def known(self, instance: str) -> set[str]:
        """The invocations of the instance that some proxy has had."""
        return set(self.memory.items(_CHANNEL, instance))

    def take(self, instance: str) -> Left | None:
        """The instance's channel, if there is one; its values are forgotten where there is none."""
        found = None
        for invocation in self.known(instance):
            handed = self._pairs.pop(invocation, None)
            if handed is None:
                self._forget(instance, invocation)
            else:
                found = self._described(instance, handed)
        return found

    def _described(self, instance: str, handed: Handed) -> Left:
        values = [self.memory.items(kind, instance) for kind in (_CHANNEL, _REST, _TORN)]
        channel, rest, torn = (found.get(handed.invocation) for found in values)
        left = Left(handed, torn=torn is not None)
        match channel:
            case [int(pid), dict(hello), str(view)] if pid > 0:
                handed.pid, left.hello, left.view = pid, hello, view
        if isinstance(rest, str):
            with suppress(ValueError):
                left.rest = base64.b64decode(rest)
        return left

    def others(self, instances: Iterable[str]) -> list[Handed]:
        """Take the pipes that belong to none of these."""
        claimed = set().union(*map(self.known, instances))
        return [self._pairs.pop(invocation) for invocation in self._pairs.keys() - claimed]

    # ---- for the next one ----

    def keep(self, instance: str, handed: Handed, view: str) -> None:
        self.store.store(handed.invocation, handed.stdin_fd, handed.stdout_fd)
        self.memory.put(_CHANNEL, instance, handed.invocation, [handed.pid, None, view])

    def release(self, instance: str, invocation: str) -> None:
        """Let go of a channel: only then does closing its stdin reach the server."""
        self.store.remove(invocation)
        self._forget(instance, invocation)

    def _forget(self, instance: str, invocation: str) -> None:
        for kind in (_CHANNEL, _REST, _TORN):
            self.memory.drop(kind, instance, invocation)

    def greeted(self, instance: str, handed: Handed, hello: dict[str, Any], view: str) -> None:
        self.memory.put(_CHANNEL, instance, handed.invocation, [handed.pid, hello, view])

    def rest(self, instance: str, handed: Handed, rest: bytes | None) -> None:
        """Note where stdout stands; None: it is not to be gone on with."""
        if rest is None:
            self.memory.put(_CHANNEL, instance, handed.invocation, [handed.pid, None, ""])
        elif rest:
            text = base64.b64encode(rest).decode()
            self.memory.put(_REST, instance, handed.invocation, text)
        else:
            self.memory.drop(_REST, instance, handed.invocation)

    def torn(self, instance: str, invocation: str, *, torn: bool) -> None:
        if torn:
            self.memory.put(_TORN, instance, invocation, 1)
        else:
            self.memory.drop(_TORN, instance, invocation)


def view_of(spec: ServerSpec) -> str:
    """A fingerprint of what a change of needs a new process."""
    text = orjson.dumps(spec.process_view(units=True), default=str, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()


def _pair(invocation: str, descriptors: list[int]) -> Handed | None:
    ways = {fcntl.fcntl(each, fcntl.F_GETFL) & os.O_ACCMODE: each for each in descriptors}
    if len(descriptors) != 2 or ways.keys() != {os.O_WRONLY, os.O_RDONLY}:
        return None
    return Handed(invocation, 0, ways[os.O_WRONLY], ways[os.O_RDONLY])
