"""The clients' certificate with its key, which root alone can read, taken for the proxy.

A pair that can be used becomes one file below /run, for the proxy's group: it is taken anew at each
change of its files, for which mcp-bridge-apply.path watches the directories that they are in.
"""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.config.certificates import (
    Certificate,
    CertificateError,
    certificate_of,
    read_pair,
)
from autobot_mcp_bridge.config.files import replace_file
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.watch import mark
from autobot_mcp_bridge.model.credential import Credential
from autobot_mcp_bridge.model.host import Tls
from autobot_mcp_bridge.units import transient
from autobot_mcp_bridge.units.access.trusted import distrust, others_place
from autobot_mcp_bridge.units.credentials import MOST_BYTES, Origin, origin, unusable
from autobot_mcp_bridge.units.instances import DROP_IN
from autobot_mcp_bridge.units.render import watch_drop_in
from autobot_mcp_bridge.units.sandbox.confinement import Facts
from autobot_mcp_bridge.units.systemctl import daemon_reload, systemctl

WATCHER = "mcp-bridge-apply.path"
MODE = 0o640
# PEM has room for other text between its blocks (RFC 7468 section 2).
_MARK = b"# of "
_DECRYPT = ("/usr/bin/systemd-creds", "cat", "secret")
_DECRYPT_WITHIN = 20.0


@dataclass(frozen=True, slots=True)
class Taking:
    """One host's certificate.

    Attributes:
        facts: where credentials are.
        units: the directory of /etc for units.
        say: gets a line for people at each step.
        owner: the uid that the files have to have; root's.
    """

    places: Places
    facts: Facts
    units: Path
    say: Callable[[str], None]
    owner: int = 0

    def take(self, tls: Tls) -> str:
        """Have the proxy given what the files hold now; why not, where it cannot be used.

        What it had stays then. Blocks.
        """
        origins = self._origins(tls)
        wanted = _MARK + mark(*(Path(it.path) for it in origins)).encode() if origins else b""
        if _first_line(self.places.tls_pem) == wanted:
            return ""
        pem = b""
        if origins:
            try:
                pem, found = self._tried(tls)
            except CertificateError as error:
                return f"host.toml: $.tls: {error}"
            self.say(f"taking the certificate for {', '.join(found.names)}")
        replace_file(self.places.tls_pem, wanted + b"\n" + pem, MODE)
        return ""

    def look(self, tls: Tls) -> Certificate | None:
        """What the files hold; None where none are named. Blocks.

        Raises:
            CertificateError: it cannot be used.
        """
        return self._tried(tls)[1] if self._origins(tls) else None

    def is_stale(self, tls: Tls) -> bool:
        """Whether the files are others than those that were taken. Cheap."""
        origins = self._origins(tls)
        now = mark(*(Path(it.path) for it in origins)).encode()
        return bool(origins) and _first_line(self.places.tls_pem) != _MARK + now

    def watch(self, tls: Tls) -> bool:
        """Have apply started when one of the files changes; whether that is new.

        Directories are watched, where a file is exchanged for another and where it really is: of
        ACME clients some switch a link and some write in place. Blocks.

        Raises:
            SystemctlError: systemd refused.
        """
        folders = {
            str(path.parent)
            for it in self._origins(tls)
            for path in (Path(it.path), Path(os.path.realpath(it.path)))
        }
        file = self.units / f"{WATCHER}.d" / DROP_IN
        text = watch_drop_in(sorted(folders)) if folders else ""
        if (file.read_text(encoding="utf-8") if file.exists() else "") == text:
            return False
        if text:
            file.parent.mkdir(mode=0o755, exist_ok=True)
            replace_file(file, text.encode(), 0o644)
        else:
            file.unlink()
        daemon_reload()
        systemctl("try-restart", [WATCHER])
        return True

    def _origins(self, tls: Tls) -> tuple[Origin, ...]:
        return tuple(self._origin(value) for value in (tls.certificate, tls.key) if value)

    def _origin(self, value: str) -> Origin:
        if value.startswith("/"):
            return Origin("", value)
        return origin(Credential(name=value), self.facts)

    def _tried(self, tls: Tls) -> tuple[bytes, Certificate]:
        certificate, key = self._origins(tls)
        both_files = not (certificate.directive or key.directive)
        for value, it in ((tls.certificate, certificate), (tls.key, key)):
            if it.directive:
                clause = unusable(Credential(name=value), self.facts)
            elif it is key:
                clause = distrust(Path(it.path), owner=self.owner)
            else:
                clause = self._others(Path(it.path))
            if clause:
                raise CertificateError(clause)
        if both_files:
            pem = read_pair(Path(certificate.path), Path(key.path))
        else:
            pem = b"\n".join(map(_loaded, (key, certificate)))
        return pem, certificate_of(pem)

    def _others(self, path: Path) -> str:
        if self.owner != 0:
            return ""
        try:
            place = others_place(Path(os.path.realpath(path)))
        except OSError as error:
            return f"{error.filename}: {error.strerror}"
        return f"{place}: others may write it; run: chmod go-w {place}" if place else ""


def _loaded(found: Origin) -> bytes:
    """What a file holds, decrypted by systemd where it is encrypted."""
    if found.directive != "LoadCredentialEncrypted":
        return Path(found.path).read_bytes()[:MOST_BYTES]
    properties = {found.directive: f"secret:{found.path}"}
    try:
        done = transient.run(_DECRYPT, properties, seconds=_DECRYPT_WITHIN, most=MOST_BYTES)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CertificateError(f"{found.path}: cannot be decrypted: {error}") from None
    if done.status != 0:
        raise CertificateError(f"{found.path}: cannot be decrypted (systemd-run: {done.status})")
    return done.answer


def _first_line(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.readline(1024).rstrip(b"\n")
    except OSError:
        return b""
