"""The host's secrets: files that systemd-creds(1) has encrypted, one each, and who uses them.

No name is embedded in the ciphertext. systemd compares an embedded one with the credential's id in
the unit (252 and 257, measured), which is the variable's name, and several servers may give one
secret to several variables.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.config.errors import DataError, MissingError
from autobot_mcp_bridge.config.files import locked, remove_file, replace_file
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.credential import Credential
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.names import is_part
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.credentials import unusable
from autobot_mcp_bridge.units.sandbox.confinement import Facts
from autobot_mcp_bridge.units.secret_uses import Use, refusal, uses_of
from autobot_mcp_bridge.units.systemctl import SystemctlError, run_tool

# A TPM takes a second or two, the host's key some milliseconds.
ENCRYPT_WITHIN = 30.0
# `auto`: by the TPM and the host's key where there is a TPM, else by the host's key alone.
ENCRYPT = ("systemd-creds", "encrypt", "--name=", "--with-key=auto", "-", "-")
DECRYPT = ("systemd-creds", "decrypt", "--name=")
_PRIVATE = 0o600
_HERE = 0o700


@dataclass(frozen=True, slots=True)
class Secret:
    """One secret, or a name that somebody uses and nobody has set.

    Attributes:
        name: or the path of a file of root's.
        kind: `encrypted`, `plain file`, `root's file` or `missing`.
        age: seconds since it was written; None: it is missing.
        uses: who is given it.
        trouble: why it could not be loaded; empty: it can be, if this host can decrypt it.
    """

    name: str
    kind: str
    age: float | None
    uses: tuple[Use, ...]
    trouble: str = ""


class Secrets:
    """The stores of one host; root's. All methods block."""

    def __init__(self, places: Places, facts: Facts | None = None) -> None:
        self.encrypted = places.encrypted_credentials
        self._facts = facts or Facts()
        self.plain = Path(self._facts.credentials)

    def has(self, name: str) -> bool:
        return (self.encrypted / name).exists() or (self.plain / name).exists()

    def demand(self, name: str, *, there: bool) -> None:
        """Raise UsageError where there is one and should be none, or the reverse."""
        if self.has(name) is there:
            return
        if there:
            raise UsageError(f"there is no {name}; `mcp-bridge secret set` makes it")
        raise UsageError(f"{name} is set; `mcp-bridge secret rotate` replaces it")

    def put(self, name: str, value: bytes, uses: Iterable[Use], *, there: bool) -> None:
        """Encrypt the value into the store: there whole or not at all, and for good.

        Args:
            name: checked.
            value: any bytes.
            uses: what it has to be good for.
            there: whether it replaces one; of two who set a new one at once the second is told.

        Raises:
            UsageError: as `demand`.
            DataError: it is good for nothing, or not for a use; without the value.
            SystemctlError: systemd cannot encrypt it, or not in time.
        """
        if clause := refusal(value, uses):
            raise DataError(f"{name}: {clause}; nothing was changed")
        text = _encrypted(value)
        with self._alone():
            self.demand(name, there=there)
            replace_file(self.encrypted / name, text, _PRIVATE)

    def holds(self, name: str, value: bytes) -> bool:
        """Whether that is its value, as a variable gets it; no, where it cannot be decrypted.

        Each encryption is another text, so that only decrypting tells.
        """
        try:
            if (path := self.encrypted / name).exists():
                found = run_tool(*DECRYPT, str(path), "-", timeout=ENCRYPT_WITHIN).encode()
            else:
                found = (self.plain / name).read_bytes()
        except (OSError, SystemctlError):
            return False
        return found.removesuffix(b"\n") == value.removesuffix(b"\n")

    def sealed(self, name: str) -> bytes | None:
        """What to `put_back` after a change that came to nothing; None: there is none."""
        try:
            return (self.encrypted / name).read_bytes()
        except FileNotFoundError:
            return None

    def put_back(self, name: str, sealed: bytes | None) -> None:
        """Have it as it was when `sealed` was asked."""
        with self._alone():
            if sealed is None:
                remove_file(self.encrypted / name)
            else:
                replace_file(self.encrypted / name, sealed, _PRIVATE)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.encrypted.mkdir(mode=_HERE, parents=True, exist_ok=True)
        with locked(self.encrypted):
            yield

    def remove(self, name: str) -> None:
        """Remove the encrypted one.

        Raises:
            MissingError: there is none.
        """
        with self._alone():
            if remove_file(self.encrypted / name):
                return
        if (self.plain / name).exists():
            raise MissingError(f"{name} is no encrypted secret; remove {self.plain / name} by hand")
        raise MissingError(f"there is no secret {name}; `mcp-bridge secret list` shows all")

    def list(self, specs: Iterable[ServerSpec], more: Iterable[Use] = ()) -> list[Secret]:
        """Every secret that is there or used, by name; files of root's come last."""
        uses = [*uses_of(specs), *more]
        names = {use.credential.name for use in uses if use.credential.name is not None}
        stored = {path.name for path in _files(self.encrypted)}
        names |= stored | {path.name for path in _files(self.plain)}
        entries = [Credential(name=name) for name in sorted(names)]
        files = {use.credential.file for use in uses if use.credential.file is not None}
        entries += [Credential(file=file) for file in sorted(files)]
        facts = Facts(
            credentials=str(self.plain),
            encrypted=str(self.encrypted),
            are_encrypted=frozenset(stored),
        )
        return [self._described(entry, uses, facts) for entry in entries]

    def _described(self, entry: Credential, uses: Iterable[Use], facts: Facts) -> Secret:
        name = entry.name or str(entry.file)
        theirs = (use for use in uses if _source(use.credential) == _source(entry))
        of_it = tuple(sorted(theirs, key=str))
        if entry.name is None:
            path, kind = Path(name), "root's file"
        elif entry.name in facts.are_encrypted:
            path, kind = self.encrypted / name, "encrypted"
        else:
            path, kind = self.plain / name, "plain file"
        try:
            age = max(0.0, time.time() - path.stat().st_mtime)
        except OSError:
            return Secret(name, "missing", None, of_it, unusable(entry, facts))
        return Secret(name, kind, age, of_it, unusable(entry, facts))


def _encrypted(value: bytes) -> bytes:
    sealed = run_tool(*ENCRYPT, given=value, timeout=ENCRYPT_WITHIN)
    if not sealed:
        raise SystemctlError(f"{ENCRYPT[0]}: printed nothing")
    return sealed.encode()


def _source(credential: Credential) -> tuple[str | None, str | None]:
    return credential.name, credential.file


def _files(directory: Path) -> Iterator[Path]:
    """Its secrets; a name that no definition could give is none of ours."""
    return (path for path in directory.glob("*") if is_part(path.name) and path.is_file())
