"""What is printed once and kept as its sha256: the files of tokens and of API keys.

One file each for those whom a broken one may shut out together, named by the whole name.
"""

import hashlib
import json
import math
import re
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from autobot_mcp_bridge.config.errors import DataError, MissingError
from autobot_mcp_bridge.config.files import (
    RefusedFileError,
    locked,
    private_directory,
    read_bounded,
    remove_file,
    replace_file,
)
from autobot_mcp_bridge.config.problem import Problem
from autobot_mcp_bridge.config.sources import server_files
from autobot_mcp_bridge.model.errors import UsageError

VERSION = 1
RANDOM_BYTES = 32
DEFAULT_OVERLAP = 3600.0  # seconds that a rotated one still counts
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class DigestRecord:
    """What is known of a token or key once it was printed.

    Attributes:
        id: 8 hex digits, to name it by.
        created: seconds since the epoch.
        expires: the same, or None for never. Checked at each use, see `counts`.
    """

    id: str
    sha256: str
    created: float
    expires: float | None
    label: str

    def counts(self, now: float) -> bool:
        return self.expires is None or now < self.expires


R = TypeVar("R", bound=DigestRecord)
# The records of a file and the time, to those that the file is to have.
Change = Callable[[list[R], float], list[R]]


@dataclass(frozen=True, slots=True)
class Scan(Generic[R]):
    """Every file's records; one that is broken has none, a problem, and its name in `broken`."""

    records: Mapping[str, tuple[R, ...]]
    problems: tuple[Problem, ...]
    broken: tuple[str, ...] = ()


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()


def random_secret(prefix: str) -> str:
    return prefix + secrets.token_urlsafe(RANDOM_BYTES)


def random_id() -> str:
    return secrets.token_hex(4)


class DigestStore(ABC, Generic[R]):
    """The files `<name>.json` below one directory. Every method blocks (disk, a file lock).

    Attributes:
        words: what the records are called, one of them and several.
        owner: what a file's name is.
    """

    words: ClassVar[tuple[str, str]]
    owner: ClassVar[str]

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @abstractmethod
    def _named(self, text: str) -> str:
        """The name of a file in its one form.

        Raises:
            ValueError: it is none.
        """

    @abstractmethod
    def _parsed(self, item: dict[str, Any]) -> R:
        """A record of a file.

        Raises:
            TypeError: a key is missing or unknown.
            ValueError: a value that is not of every record is wrong.
        """

    @property
    @abstractmethod
    def _most(self) -> int:
        """Records of one file."""

    def revoke(self, name: str, record_id: str | None = None) -> list[R]:
        """End one, or all of them for None, at once; those that ended.

        Raises:
            MissingError: there is no such one.
            DataError: the file is broken (all of them can be revoked nevertheless).
        """
        if record_id is None:
            try:
                ended = self.list(name)
            except DataError:
                ended = []
            self.remove(name)
            return ended
        ended = [record for record in self.list(name) if record.id == record_id]
        if not ended:
            raise self._missing(name, record_id)
        self._edit(name, lambda records, _now: [r for r in records if r.id != record_id])
        return ended

    def _missing(self, name: str, record_id: str) -> MissingError:
        one, _ = self.words
        return MissingError(f"{name} has no {one} {record_id}; `{one} list` shows them")

    def list(self, name: str) -> list[R]:
        """The records of one file, oldest first, the expired ones too.

        Raises:
            DataError: the file is broken.
        """
        return list(self._read(self._path(name)))

    def remove(self, name: str) -> bool:
        """Forget all of one file; False if there was none."""
        path = self._path(name)
        if not self._directory.is_dir():
            return False
        with locked(self._directory):
            return remove_file(path)

    def scan(self) -> Scan[R]:
        """Read every file; never raises on bad content."""
        records: dict[str, tuple[R, ...]] = {}
        problems: list[Problem] = []
        try:
            files = server_files(self._directory)
        except OSError as error:
            clause = f"cannot be listed: {error.strerror}"
            return Scan({}, (Problem(str(self._directory), "", "", clause),))
        for path in files:
            try:
                if self._named(path.stem) != path.stem:
                    raise ValueError
            except ValueError:
                problems.append(Problem(str(path), "", "", f"the name is no {self.owner}"))
                continue
            try:
                records[path.stem] = self._read(path)
            except DataError as error:
                problems.append(Problem(str(path), "", "", str(error).partition(": ")[2]))
            except Exception as error:  # noqa: BLE001 - one file never holds up another's revocations
                problems.append(Problem(str(path), "", "", f"cannot be understood: {error!r:.200}"))
        broken = tuple(path.stem for path in files if path.stem not in records)
        return Scan(records, tuple(problems), broken)

    def digests(self) -> dict[str, tuple[R, ...]]:
        """A file's name to its records; ask a record's `counts` at each use."""
        return dict(self.scan().records)

    def _path(self, name: str) -> Path:
        try:
            return self._directory / f"{self._named(name)}.json"
        except ValueError as error:
            raise UsageError(str(error)) from error

    def _read(self, path: Path) -> tuple[R, ...]:
        try:
            document = json.loads(read_bounded(path))
        except FileNotFoundError:
            return ()
        except RefusedFileError as error:
            raise DataError(f"{path}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: not JSON") from error
        return self._checked(document, path)

    def _edit(self, name: str, change: Change[R]) -> None:
        path = self._path(name)
        mode = private_directory(self._directory)
        _, many = self.words
        with locked(self._directory):
            now = time.time()
            kept = [record for record in self._read(path) if record.counts(now)]
            records = change(kept, now)
            if len(records) > self._most:
                raise UsageError(f"{name} has {self._most} {many}; revoke some first")
            document = {"version": VERSION, many: [asdict(record) for record in records]}
            replace_file(path, json.dumps(document, indent=1).encode() + b"\n", mode)

    def _checked(self, document: Any, path: Path) -> tuple[R, ...]:
        _, many = self.words
        if not isinstance(document, dict) or document.get("version") != VERSION:
            raise DataError(f"{path}: allowed is an object with version {VERSION} and {many}")
        raw = document.get(many)
        if not isinstance(raw, list):
            raise DataError(f"{path}: allowed is a list of {many}")
        return tuple(self._record(item, index, path) for index, item in enumerate(raw))

    def _record(self, item: Any, index: int, path: Path) -> R:
        one, _ = self.words
        try:
            record = self._parsed(item)
        except TypeError as error:
            raise DataError(f"{path}: {one} {index}: a key is missing or unknown") from error
        except ValueError as error:
            raise DataError(f"{path}: {one} {index}: {error}") from error
        right = (
            isinstance(record.id, str)
            and isinstance(record.label, str)
            and isinstance(record.sha256, str)
            and _SHA256.fullmatch(record.sha256) is not None
            and _is_time(record.created)
            and (record.expires is None or _is_time(record.expires))
        )
        if not right:  # a record that cannot be read must not become one that never expires
            raise DataError(f"{path}: {one} {index}: a value is of the wrong kind")
        return record


def ending(record: R, latest: float) -> R:
    """The record, which counts until then at the latest."""
    expires = latest if record.expires is None else min(record.expires, latest)
    return replace(record, expires=expires)


def _is_time(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every double
        return False
