"""accepted.json: the last good configuration, as apply put it to use; what the proxy works from.

Root writes it, the proxy's group reads it. It holds no secret.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.config.files import replace_file
from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.states import State

VERSION = 1
MAX_BYTES = 64 << 20  # 10,000 servers of some KiB
MODE = 0o640


@dataclass(frozen=True, slots=True)
class AcceptedServer:
    """A server and whether its unit can be started.

    Attributes:
        state: None when it can; else INSTALLING, INSTALL_FAILED or CREDENTIAL_MISSING.
        why: a sentence for the state.
        argv: what its unit executes: the definition's command, resolved.
        rotated: when a secret of its was rotated last, as in Command.
    """

    spec: ServerSpec
    state: State | None = None
    why: str = ""
    argv: tuple[str, ...] = ()
    rotated: int = 0


@dataclass(frozen=True, slots=True)
class Accepted:
    """A configuration in force."""

    host: HostSettings = field(default_factory=HostSettings)
    servers: tuple[AcceptedServer, ...] = ()
    digest: str = ""

    @property
    def instances(self) -> set[str]:
        """Of every server, disabled ones too."""
        return {server.spec.instance for server in self.servers}

    def without(self, instances: Iterable[str], wanted: "Accepted") -> "Accepted":
        """What is in force while the units of some servers go.

        Args:
            instances: those servers.
            wanted: what comes then; a server that it still has, disabled, keeps its tokens.
        """
        instead = {server.spec.instance: server for server in wanted.servers}
        gone = dict.fromkeys(instances)
        found = (
            instead.get(server.spec.instance) if server.spec.instance in gone else server
            for server in self.servers
        )
        # Another digest than any that was ever read: it is in force for moments only.
        return Accepted(self.host, tuple(filter(None, found)), f"{self.digest}-")


def write(path: Path, accepted: Accepted) -> None:
    """Replace the file at once; it keeps the group that it or its directory has."""
    document = {
        "version": VERSION,
        "digest": accepted.digest,
        "host": accepted.host.model_dump(mode="json", by_alias=True),
        "servers": [_written(server) for server in accepted.servers],
    }
    replace_file(path, json.dumps(document, indent=1).encode() + b"\n", MODE)


def read(path: Path) -> Accepted:
    """Read the file; without one nothing is accepted yet.

    Raises:
        DataError: it is not what apply writes.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return Accepted()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    if not text:
        return Accepted()  # as tmpfiles.d makes it
    try:
        if len(text) > MAX_BYTES:
            raise ValueError("too large")
        document = json.loads(text)
        if document["version"] != VERSION:
            raise ValueError("of another version")
        host = HostSettings.model_validate(document["host"])
        servers = tuple(map(_read, document["servers"]))
        return Accepted(host, servers, str(document["digest"]))
    except (ValueError, LookupError, TypeError, ValidationError, RecursionError) as error:
        raise DataError(f"{path}: not what `mcp-bridge apply` writes: {error}") from None


def _written(server: AcceptedServer) -> dict[str, Any]:
    spec = server.spec.model_dump(mode="json", exclude_defaults=True)
    if "limits" in spec and "cpu" in spec["limits"]:
        spec["limits"]["cpu"] = f"{spec['limits']['cpu']}%"
    written = {"spec": spec, "state": server.state, "why": server.why, "argv": server.argv}
    return {**written, "rotated": server.rotated} if server.rotated else written


def _read(found: Any) -> AcceptedServer:
    state = State(found["state"]) if found["state"] is not None else None
    spec, argv = ServerSpec.model_validate(found["spec"]), tuple(map(str, found.get("argv", ())))
    return AcceptedServer(spec, state, str(found["why"]), argv, int(found.get("rotated", 0)))
