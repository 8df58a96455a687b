"""Where systemd loads a server's credentials from, and whether they are there."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.config.problem import json_path
from autobot_mcp_bridge.model.credential import Credential
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.access.trusted import distrust
from autobot_mcp_bridge.units.sandbox.confinement import Facts

# All of a unit's credentials have 1 MiB with their names (252 and 257, measured).
MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Origin:
    """One line of a unit: the directive, and the file that it names."""

    directive: str
    path: str


def origin(credential: Credential, facts: Facts) -> Origin:
    """Where one comes from; a name is looked for among the encrypted ones first. Pure."""
    if credential.name is None:
        return Origin("LoadCredential", str(credential.file))
    if credential.name in facts.are_encrypted:
        return Origin("LoadCredentialEncrypted", f"{facts.encrypted}/{credential.name}")
    return Origin("LoadCredential", f"{facts.credentials}/{credential.name}")


def missing(spec: ServerSpec, facts: Facts) -> Iterator[str]:
    """Each credential that could not be loaded: place, what is wrong, the command that helps.

    Blocks (disk). What an encrypted one holds is not looked at: only a start decrypts it.
    """
    for variable, credential in sorted(spec.secrets.items()):
        if clause := unusable(credential, facts):
            yield f"{json_path(('credentials', variable))}: {clause}"


def unusable(credential: Credential, facts: Facts) -> str:
    """Why systemd could not load it; empty: it is there. Blocks (disk)."""
    found = origin(credential, facts)
    if credential.name is None:
        return distrust(Path(found.path)) or _oversized(Path(found.path))
    try:
        mode = Path(found.path).stat().st_mode
    except FileNotFoundError:
        return (
            f"there is no secret {credential.name} in {facts.encrypted} or {facts.credentials}; "
            f"run: mcp-bridge secret set {credential.name}"
        )
    except OSError as error:
        return f"{found.path}: {os.strerror(error.errno or 0)}"
    if not stat.S_ISREG(mode):
        return f"{found.path}: allowed is a regular file"
    # The text of an encrypted one is longer than the secret.
    encrypted = found.directive.endswith("Encrypted")
    return "" if encrypted else _oversized(Path(found.path))


def _oversized(path: Path) -> str:
    if path.stat().st_size > MOST_BYTES:
        return f"{path}: allowed are at most {MOST_BYTES} bytes"
    return ""
