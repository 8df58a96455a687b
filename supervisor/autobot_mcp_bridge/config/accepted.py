"""accepted.json: the last good configuration, as apply put it to use; what the proxy works from.

Root writes it, the proxy's group reads it. It holds no secret.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.config import written
from autobot_mcp_bridge.config.files import replace_file
from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.states import State

VERSION = 1
MODE = 0o640


@dataclass(frozen=True, slots=True)
class AcceptedServer:
    """A server and whether its unit can be started.

    Attributes:
        state: None when it can; else INSTALLING, INSTALL_FAILED, CREDENTIAL_MISSING or REFUSED.
        why: a sentence for the state.
        argv: what its unit executes: the definition's command, resolved.
        rotated: when a secret of its was rotated last, as in Command.
        refused: why the files' definition is not in force: this is the one before, or the server
            is REFUSED. Empty: it is in force.
    """

    spec: ServerSpec
    state: State | None = None
    why: str = ""
    argv: tuple[str, ...] = ()
    rotated: int = 0
    refused: str = ""


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
    return written.read(path, VERSION, _accepted) or Accepted()


def _accepted(document: Any) -> Accepted:
    host = HostSettings.model_validate(document["host"])
    return Accepted(host, tuple(map(_read, document["servers"])), str(document["digest"]))


def _written(server: AcceptedServer) -> dict[str, Any]:
    spec = server.spec.model_dump(mode="json", exclude_defaults=True)
    if "limits" in spec and "cpu" in spec["limits"]:
        spec["limits"]["cpu"] = f"{spec['limits']['cpu']}%"
    entry = {"spec": spec, "state": server.state, "why": server.why, "argv": server.argv}
    more = {"rotated": server.rotated, "refused": server.refused}
    return {**entry, **{key: value for key, value in more.items() if value}}


def _read(found: Any) -> AcceptedServer:
    state = State(found["state"]) if found["state"] is not None else None
    spec, argv = ServerSpec.model_validate(found["spec"]), tuple(map(str, found.get("argv", ())))
    rotated, refused = int(found.get("rotated", 0)), str(found.get("refused", ""))
    return AcceptedServer(spec, state, str(found["why"]), argv, rotated, refused)
