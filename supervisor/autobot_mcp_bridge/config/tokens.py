"""The tokens of each server: made here, printed once, kept as sha256 only.

One file per server, named by its whole instance name (never a prefix of it), so that a broken
file shuts out one server's callers and nobody else's.
"""

import hashlib
import json
import math
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
from autobot_mcp_bridge.model.names import parse_instance

VERSION = 1
PREFIX = "mcpb_"
RANDOM_BYTES = 32
DEFAULT_OVERLAP = 3600.0  # seconds that a rotated token still counts
_SHA256 = re.compile(r"[0-9a-f]{64}")
MAX_TOKENS = 100  # of one server: each is compared at every call


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """What is known of a token once it was printed.

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


@dataclass(frozen=True, slots=True)
class TokenScan:
    """Every server's tokens; a server whose file is broken has none, and a problem."""

    records: Mapping[str, tuple[TokenRecord, ...]]
    problems: tuple[Problem, ...]


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()


_Change = Callable[[list[TokenRecord], float], list[TokenRecord]]


class TokenStore:
    """The files `<instance>.json` below one directory. Every method blocks (disk, a file lock)."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def new(
        self, instance: str, label: str = "", expires: float | None = None
    ) -> tuple[str, TokenRecord]:
        """Make one more token. The token is returned here and never again.

        Raises:
            UsageError: the server has MAX_TOKENS.
            DataError: its file is broken.
        """
        token, record = _make(label, expires)
        self._edit(instance, lambda records, _now: [*records, record])
        return token, record

    def rotate(
        self, instance: str, overlap: float = DEFAULT_OVERLAP, label: str = ""
    ) -> tuple[str, TokenRecord]:
        """Make a new token; every older one counts for `overlap` seconds more at most.

        Raises:
            DataError: its file is broken.
        """
        token, record = _make(label, None)

        def older_end(records: list[TokenRecord], now: float) -> list[TokenRecord]:
            return [*(_ending(old, now + overlap) for old in records), record]

        self._edit(instance, older_end)
        return token, record

    def revoke(self, instance: str, token_id: str | None = None) -> list[TokenRecord]:
        """End one token, or all of them for None, at once; those that ended.

        Raises:
            MissingError: there is no such token.
            DataError: its file is broken (all of them can be revoked nevertheless).
        """
        if token_id is None:
            try:
                ended = self.list(instance)
            except DataError:
                ended = []
            self.remove(instance)
            return ended
        ended = [record for record in self.list(instance) if record.id == token_id]
        if not ended:
            raise MissingError(f"{instance} has no token {token_id}; `token list` shows them")
        self._edit(instance, lambda records, _now: [r for r in records if r.id != token_id])
        return ended

    def list(self, instance: str) -> list[TokenRecord]:
        """The server's tokens, oldest first, the expired ones too.

        Raises:
            DataError: its file is broken.
        """
        return list(self._read(self._path(instance)))

    def remove(self, instance: str) -> bool:
        """Forget the server's tokens; False if it had no file."""
        path = self._path(instance)
        if not self._directory.is_dir():
            return False
        with locked(self._directory):
            return remove_file(path)

    def scan(self) -> TokenScan:
        """Read every server's tokens; never raises on bad content."""
        records: dict[str, tuple[TokenRecord, ...]] = {}
        problems: list[Problem] = []
        try:
            files = server_files(self._directory)
        except OSError as error:
            clause = f"cannot be listed: {error.strerror}"
            return TokenScan({}, (Problem(str(self._directory), "", "", clause),))
        for path in files:
            try:
                if parse_instance(path.stem).instance != path.stem:
                    raise ValueError
            except ValueError:
                problems.append(Problem(str(path), "", "", "the name is no server's instance"))
                continue
            try:
                records[path.stem] = self._read(path)
            except DataError as error:
                problems.append(Problem(str(path), "", "", str(error).partition(": ")[2]))
            except Exception as error:  # noqa: BLE001 - one file never holds up another's revocations
                problems.append(Problem(str(path), "", "", f"cannot be understood: {error!r:.200}"))
        return TokenScan(records, tuple(problems))

    def digests(self) -> dict[str, tuple[TokenRecord, ...]]:
        """Instance name to its tokens; ask a record's `counts` at each use."""
        return dict(self.scan().records)

    def _path(self, instance: str) -> Path:
        try:
            return self._directory / f"{parse_instance(instance).instance}.json"
        except ValueError as error:
            raise UsageError(str(error)) from error

    def _read(self, path: Path) -> tuple[TokenRecord, ...]:
        try:
            document = json.loads(read_bounded(path))
        except FileNotFoundError:
            return ()
        except RefusedFileError as error:
            raise DataError(f"{path}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: not JSON") from error
        return _checked(document, path)

    def _edit(self, instance: str, change: _Change) -> None:
        path = self._path(instance)
        mode = private_directory(self._directory)
        with locked(self._directory):
            now = time.time()
            kept = [record for record in self._read(path) if record.counts(now)]
            records = change(kept, now)
            if len(records) > MAX_TOKENS:
                raise UsageError(f"{instance} has {MAX_TOKENS} tokens; revoke some first")
            document = {"version": VERSION, "tokens": [asdict(record) for record in records]}
            replace_file(path, json.dumps(document, indent=1).encode() + b"\n", mode)


def _make(label: str, expires: float | None) -> tuple[str, TokenRecord]:
    token = PREFIX + secrets.token_urlsafe(RANDOM_BYTES)
    record = TokenRecord(secrets.token_hex(4), digest_of(token), time.time(), expires, label)
    return token, record


def _ending(record: TokenRecord, latest: float) -> TokenRecord:
    expires = latest if record.expires is None else min(record.expires, latest)
    return TokenRecord(record.id, record.sha256, record.created, expires, record.label)


def _checked(document: Any, path: Path) -> tuple[TokenRecord, ...]:
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise DataError(f"{path}: allowed is an object with version {VERSION} and tokens")
    raw = document.get("tokens")
    if not isinstance(raw, list):
        raise DataError(f"{path}: allowed is a list of tokens")
    return tuple(_record(item, index, path) for index, item in enumerate(raw))


def _record(item: Any, index: int, path: Path) -> TokenRecord:
    try:
        record = TokenRecord(**item)
    except TypeError as error:
        raise DataError(f"{path}: token {index}: a key is missing or unknown") from error
    right = (
        isinstance(record.id, str)
        and isinstance(record.label, str)
        and isinstance(record.sha256, str)
        and _SHA256.fullmatch(record.sha256) is not None
        and _is_time(record.created)
        and (record.expires is None or _is_time(record.expires))
    )
    if not right:  # a record that cannot be read must not become a token that never expires
        raise DataError(f"{path}: token {index}: a value is of the wrong kind")
    return record


def _is_time(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every double
        return False
