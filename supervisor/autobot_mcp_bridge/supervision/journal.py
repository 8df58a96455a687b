"""What must outlive this process: lines in a memory file that systemd holds for the next one.

Each change is one line of JSON, written at once (a few microseconds, memfd_create(2)): whatever
ends the process, the state is that of the last whole line. When the lines have become many more
than what they say, what they say is written into a new file, which systemd has before it lets go
of the old one.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import orjson

# A file is written anew at so many bytes, and at so many times what it began with.
COMPACT_AT = 1 << 20
COMPACT_FACTOR = 4
_FILE = "state-"

log = logging.getLogger(__name__)


class Memory(Protocol):
    """Values by kind, instance and name; JSON only. A caller need not know whether they last."""

    def put(self, kind: str, instance: str, name: str, value: Any) -> None: ...

    def drop(self, kind: str, instance: str, name: str) -> None:
        """Forget a value; one that is not there is none."""
        ...

    def items(self, kind: str, instance: str) -> dict[str, Any]:
        """The values by name."""
        ...

    def only(self, instances: Iterable[str]) -> None:
        """Forget all that is of others."""
        ...


class Forgetful:
    """A memory without any: nothing here is asked for by the next process."""

    def put(self, kind: str, instance: str, name: str, value: Any) -> None: ...

    def drop(self, kind: str, instance: str, name: str) -> None: ...

    def items(self, kind: str, instance: str) -> dict[str, Any]:
        del kind, instance
        return {}

    def only(self, instances: Iterable[str]) -> None: ...


class Store(Protocol):
    """systemd's descriptor store, which outlives this process (sd_notify(3), FDSTORE=1)."""

    def store(self, name: str, *descriptors: int) -> None:
        """Have duplicates of the descriptors held, all under one name."""
        ...

    def remove(self, name: str) -> None:
        """Have those of this name closed."""
        ...


class Storeless:
    """A store that holds nothing: what this process has ends with it."""

    def store(self, name: str, *descriptors: int) -> None: ...

    def remove(self, name: str) -> None: ...


class Held:
    """The values that some lines say."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], dict[str, Any]] = {}

    def put(self, kind: str, instance: str, name: str, value: Any) -> None:
        self._values.setdefault((kind, instance), {})[name] = value

    def drop(self, kind: str, instance: str, name: str) -> bool:
        """Whether it was there."""
        values = self._values.get((kind, instance), {})
        if name not in values:
            return False
        del values[name]
        if not values:
            del self._values[kind, instance]
        return True

    def items(self, kind: str, instance: str) -> dict[str, Any]:
        return dict(self._values.get((kind, instance), {}))

    def instances(self) -> set[str]:
        return {instance for _, instance in self._values}

    def kinds(self, instance: str) -> list[str]:
        return [kind for kind, other in self._values if other == instance]

    def lines(self) -> Iterator[bytes]:
        for (kind, instance), values in self._values.items():
            for name, value in values.items():
                yield line_of(kind, instance, name, value)

    @classmethod
    def of(cls, text: bytes) -> "Held":
        """What the lines say; a last one without its end is none, and so is one that is not ours."""
        held = cls()
        for line in text.split(b"\n")[:-1]:
            try:
                entry = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            match entry:
                case [str(kind), str(instance), str(name), value]:
                    held.put(kind, instance, name, value)
                case [str(kind), str(instance), str(name)]:
                    held.drop(kind, instance, name)
        return held


def line_of(*entry: Any) -> bytes:
    return orjson.dumps(entry) + b"\n"


class Journal:
    """Implements `Memory`.

    Args:
        store: keeps the file.
        stored: the descriptors that the process before has left, by name; those of its files are
            read and closed.

    Attributes:
        generation: another number for each process, from 1.

    Raises:
        OSError: there is no memory for a file.
    """

    def __init__(self, store: Store, stored: Mapping[str, Iterable[int]]) -> None:
        self._store = store
        files = sorted((_number(name), name) for name in stored if name.startswith(_FILE))
        # With two of them the process ended between its last steps; the newer one is whole, too.
        self._held = Held()
        for number, name in files:
            for descriptor in stored[name]:
                if number == files[-1][0]:
                    self._held = Held.of(_read(descriptor))
                os.close(descriptor)
        before = self._held.items("proxy", "").get("generation")
        self.generation = before + 1 if isinstance(before, int) else 1
        self._held.put("proxy", "", "generation", self.generation)
        self._number = files[-1][0] if files else 0
        self._file = -1
        self._begin()
        for _, name in files:
            store.remove(name)

    def put(self, kind: str, instance: str, name: str, value: Any) -> None:
        self._held.put(kind, instance, name, value)
        self._write(line_of(kind, instance, name, value))

    def drop(self, kind: str, instance: str, name: str) -> None:
        if self._held.drop(kind, instance, name):
            self._write(line_of(kind, instance, name))

    def items(self, kind: str, instance: str) -> dict[str, Any]:
        return self._held.items(kind, instance)

    def only(self, instances: Iterable[str]) -> None:
        for instance in self._held.instances() - {"", *instances}:
            for kind in self._held.kinds(instance):
                for name in self._held.items(kind, instance):
                    self.drop(kind, instance, name)

    def close(self) -> None:
        os.close(self._file)

    def _write(self, line: bytes) -> None:
        try:
            os.write(self._file, line)
            self._size += len(line)
            if self._size >= self._limit:
                self._compact()
        except OSError as error:
            # Then a restart loses what was written since; whoever calls now must not lose more.
            log.warning("the state for the next start cannot be written: %s", error.strerror)

    def _compact(self) -> None:
        old, name = self._file, f"{_FILE}{self._number}"
        self._begin()
        self._store.remove(name)
        os.close(old)

    def _begin(self) -> None:
        text = b"".join(self._held.lines())
        file = os.memfd_create("mcp-bridge-state", os.MFD_CLOEXEC)
        try:
            view = memoryview(text)
            while view:
                view = view[os.write(file, view) :]
        except OSError:
            os.close(file)
            raise
        self._file, self._size = file, len(text)
        self._limit = max(COMPACT_AT, COMPACT_FACTOR * len(text))
        self._number += 1
        self._store.store(f"{_FILE}{self._number}", file)


def _read(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _number(name: str) -> int:
    digits = name.removeprefix(_FILE)
    return int(digits) if digits.isdecimal() else 0
