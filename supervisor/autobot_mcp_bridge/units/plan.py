"""What apply has to change: the wanted servers against the drop-ins that are there. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from autobot_mcp_bridge.config.accepted import Accepted, AcceptedServer
from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.config.load import Loaded
from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.states import State
from autobot_mcp_bridge.units import render
from autobot_mcp_bridge.units.packages.job import InstallError
from autobot_mcp_bridge.units.packages.specs import PackageSpec
from autobot_mcp_bridge.units.rotations import newest
from autobot_mcp_bridge.units.sandbox.confinement import Facts

Resolve = Callable[[ServerSpec], Command | PackageSpec]
Refusals = Callable[[ServerSpec], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole of a change.

    Attributes:
        accepted: what is in force once it is done.
        texts: instance to its drop-in, for each server that can be started.
        added, changed, removed: instances, sorted.
        missing: packages that have to be installed first.
        ports: socket unit of the proxy to its drop-in, "" for none.
    """

    accepted: Accepted
    texts: Mapping[str, str]
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    missing: tuple[PackageSpec, ...]
    ports: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_units(self) -> bool:
        """Whether units of servers change."""
        return bool(self.added or self.changed or self.removed)


def plan(
    loaded: Loaded,
    resolve: Resolve,
    facts: Facts,
    there: Mapping[str, str],
    refusals: Refusals = lambda _spec: (),
    missing_secrets: Refusals = lambda _spec: (),
    rotations: Mapping[str, int] = MappingProxyType({}),
) -> Plan:
    """Compare.

    Args:
        loaded: the configuration, without problems.
        resolve: says what a command means; raises InstallError.
        facts: of this host.
        there: instance to the text of its drop-in on the disk.
        refusals: what this host cannot give a server, each with its place.
        missing_secrets: each credential of a server's that cannot be loaded, which is its own
            trouble: its units are made, and it waits for the secret.
        rotations: name of a secret to the time when servers were to be started anew with it.

    Raises:
        DataError: some server asks for what no unit can carry; all of them, each with its place.
    """
    texts: dict[str, str] = {}
    servers: list[AcceptedServer] = []
    missing: list[PackageSpec] = []
    refused: list[str] = []
    for spec in loaded.servers:
        if not spec.enabled:
            servers.append(AcceptedServer(spec))
            continue
        try:
            command = resolve(spec)
            if isinstance(command, PackageSpec):
                missing.append(command)
                servers.append(_installing(spec, command))
                continue
            refused += [f"{spec.instance}: {clause}" for clause in refusals(spec)]
            texts[spec.instance] = render.drop_in(spec, command, facts)
        except InstallError as error:
            servers.append(AcceptedServer(spec, State.INSTALL_FAILED, str(error)))
        except UsageError as error:
            refused.append(str(error))
        else:
            lack = "; ".join(missing_secrets(spec))
            state = State.CREDENTIAL_MISSING if lack else None
            rotated = newest(spec, rotations)
            servers.append(AcceptedServer(spec, state, lack, tuple(command.argv), rotated))
    if refused:
        raise DataError("\n".join(refused))
    # What cannot be started only now keeps the units that it has: its package is being replaced.
    known = {server.spec.instance for server in servers if server.spec.enabled}
    return Plan(
        accepted=Accepted(loaded.host, tuple(servers), loaded.digest),
        texts=texts,
        added=tuple(sorted(texts.keys() - there.keys())),
        changed=tuple(
            sorted(name for name in texts.keys() & there.keys() if texts[name] != there[name])
        ),
        removed=tuple(sorted(there.keys() - known)),
        missing=tuple(dict.fromkeys(missing)),
    )


def _installing(spec: ServerSpec, package: PackageSpec) -> AcceptedServer:
    return AcceptedServer(spec, State.INSTALLING, f"{package.label} is being installed")
