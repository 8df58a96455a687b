"""Writing a snippet into a client's file: only its entry, at once, with a backup beside it."""

import contextlib
import os
import pwd
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from autobot_mcp_bridge.config.errors import DataError, DeniedError, UnavailableError
from autobot_mcp_bridge.config.files import RefusedFileError, read_bounded, replace_file
from autobot_mcp_bridge.connect import edit_json, edit_toml
from autobot_mcp_bridge.connect.change import applied
from autobot_mcp_bridge.connect.clients import Scope, Syntax
from autobot_mcp_bridge.connect.snippets import Snippet
from autobot_mcp_bridge.model.errors import UsageError

MOST_BYTES = 64 << 20  # Claude Code keeps all of its state in the file, for years
TRIES = 3  # a client that runs may write its file at any moment
_BOM = "\ufeff"
_MODES = {Scope.USER: 0o600, Scope.PROJECT: 0o644}
_SYNTAX: dict[Syntax, ModuleType] = {Syntax.JSON: edit_json, Syntax.TOML: edit_toml}


@dataclass(frozen=True, slots=True)
class Written:
    """What came of it.

    Attributes:
        file: the client's, as it was named.
        changed: whether it had to be.
        backup: what it was before; None: it was not there, or has not been changed.
    """

    file: Path
    changed: bool
    backup: Path | None = None


def write(file: Path, snippet: Snippet, scope: Scope, *, replace: bool = False) -> Written:
    """Have the file hold the snippet's entry.

    As root everything is done as the user whose directories lead there, who could not have root
    write elsewhere by a symlink therefore.

    Raises:
        DataError: the file is not understood; nothing was written.
        UsageError: the entry is another server's (`Snippet.changes`).
        DeniedError: this user may not.
        UnavailableError: the client changed it at the same time, TRIES times.
        OSError: the disk is full, a directory is missing and cannot be made.
    """
    with acting_for(file):
        try:
            for _ in range(TRIES):
                if (written := _write(file, snippet, scope, replace=replace)) is not None:
                    return written
        except PermissionError as error:
            raise DeniedError(f"{error.filename or file}: {error.strerror}") from error
    raise UnavailableError(f"{file}: somebody else is changing it; try again")


def rendered(snippet: Snippet) -> str:
    """The snippet as a whole file has it."""
    text: str = _SYNTAX[snippet.client.syntax].fresh(snippet.document)
    return text


def edited(text: str, snippet: Snippet, *, replace: bool = False) -> str:
    """The file's text with the snippet's entry; the same text, if it stands there.

    What was made is read again: it is to hold what was wanted, and all else as before.

    Raises:
        DataError: the text is not understood, or cannot be edited without touching more.
        UsageError: the entry is another server's (`Snippet.changes`).
    """
    syntax = _SYNTAX[snippet.client.syntax]
    mark = _BOM if text.startswith(_BOM) else ""
    text = text.removeprefix(_BOM)
    if not text.strip():
        new: str = syntax.fresh(snippet.document, "\r\n" if "\r\n" in text else "\n")
        return mark + new
    before = syntax.parse(text)
    changes = snippet.changes(before, replace=replace)
    if not changes:
        return mark + text
    result: str = syntax.edit(text, changes)
    try:
        proved = _comparable(syntax.parse(result)) == _comparable(applied(before, changes))
    except DataError:
        proved = False
    except RecursionError as error:
        raise DataError("not understood: it is nested too deeply") from error
    if not proved:
        raise DataError("it cannot be changed without touching more; add the entry by hand")
    return mark + result


def _comparable(value: Any) -> object:
    """Equal for equal values only: True is not 1 there, and NaN is itself."""
    if isinstance(value, dict):
        return sorted((key, _comparable(member)) for key, member in value.items())
    if isinstance(value, list):
        return [_comparable(member) for member in value]
    return repr(value)


def _write(file: Path, snippet: Snippet, scope: Scope, *, replace: bool) -> Written | None:
    """None: the file was changed in between."""
    before = _status(file)
    data = b"" if before is None else _read(file)
    try:
        text = data.decode()
        wanted = edited(text, snippet, replace=replace).encode()
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: byte {error.start}: allowed is UTF-8 text") from error
    except (DataError, UsageError) as error:
        raise type(error)(f"{file}: {error}") from error
    if before is not None and wanted == data:
        return Written(file, changed=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    backup = None if before is None else _back_up(file, data, stat.S_IMODE(before.st_mode))
    if _seen(before) != _seen(_status(file)):
        if backup is not None:
            backup.unlink()
        return None
    mode = _MODES[scope] if before is None else stat.S_IMODE(before.st_mode)
    replace_file(file, wanted, mode)
    return Written(file, changed=True, backup=backup)


def _read(file: Path) -> bytes:
    try:
        return read_bounded(file, MOST_BYTES)
    except RefusedFileError as error:
        raise DataError(f"{file}: {error}") from error


def _status(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except FileNotFoundError:
        return None


def _seen(status: os.stat_result | None) -> tuple[int, ...]:
    if status is None:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _back_up(file: Path, data: bytes, mode: int) -> Path:
    """A new file beside it, never one that is there."""
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    backup = file.with_name(f"{file.name}.{now}.bak")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(backup, flags, 0o600)
    with os.fdopen(fd, "wb") as out:
        out.write(data)
        os.fchmod(fd, mode)
        out.flush()
        os.fsync(fd)
    return backup


def other_user(file: Path) -> int | None:
    """As whom root writes the file: the user who could have its path lead elsewhere, if any.

    Raises:
        DeniedError: several could.
    """
    owners = _owners(file) if os.geteuid() == 0 else set()
    if len(owners) > 1:
        names = ", ".join(sorted(map(_name, owners)))
        raise DeniedError(f"{file}: parts of its path belong to different users: {names}")
    return next(iter(owners), None)


@contextlib.contextmanager
def acting_for(file: Path) -> Iterator[None]:
    """Be the file's `other_user` for a while, if there is one.

    Raises:
        DeniedError: several could be, or it is nobody whom this host knows.
    """
    if (uid := other_user(file)) is None:
        yield
        return
    groups, gid = os.getgroups(), os.getegid()
    try:
        account = pwd.getpwuid(uid)
    except KeyError as error:
        raise DeniedError(f"{file}: belongs to uid {uid}, which is no user here") from error
    try:
        os.initgroups(account.pw_name, account.pw_gid)
        os.setegid(account.pw_gid)
        os.seteuid(uid)
        yield
    finally:
        os.seteuid(0)
        os.setegid(gid)
        os.setgroups(groups)


def _owners(file: Path) -> set[int]:
    """Whom, but root, a directory, a symlink or the file itself belongs to on the way there."""
    owners = set()
    real = Path(os.path.realpath(file))
    for part in {file, *file.parents, real, *real.parents}:
        with contextlib.suppress(FileNotFoundError):
            owners.add(part.lstat().st_uid)
    return owners - {0}


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
