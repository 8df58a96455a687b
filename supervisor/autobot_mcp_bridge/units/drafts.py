"""What would become of one server's definition on this host, before anything is decided."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from autobot_mcp_bridge.config.accepted import AcceptedServer
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
Over = Callable[[Iterable[tuple[ServerSpec, str]]], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Draft:
    """A definition, judged by itself.

    Attributes:
        server: what would be in force.
        text: its drop-in; None where it has none yet.
        package: what has to be installed first.
        refused: what keeps it from being put to use, each with its place.
    """

    server: AcceptedServer
    text: str | None = None
    package: PackageSpec | None = None
    refused: tuple[str, ...] = ()

    @property
    def spec(self) -> ServerSpec:
        return self.server.spec


@dataclass(frozen=True, slots=True)
class Host:
    """What this host is asked of a server; all of it blocks.

    Attributes:
        resolve: says what a command means; raises InstallError.
        facts: where things lie.
        refusals: what the host cannot give the server, each with its place.
        missing_secrets: each credential that cannot be loaded, which is no refusal: the units are
            made, and the server waits for the secret.
        over: of servers with their drop-ins, instance to why its unit is more exposed than
            max_exposure allows.
        distrusted: whether what it would be started from is not root's alone.
        rotations: name of a secret to the time when servers were to be started anew with it.
    """

    resolve: Resolve
    facts: Facts = field(default_factory=Facts)
    refusals: Refusals = lambda _spec: ()
    missing_secrets: Refusals = lambda _spec: ()
    over: Over = lambda _pairs: {}
    distrusted: Callable[[ServerSpec], bool] = lambda _spec: False
    rotations: Mapping[str, int] = field(default_factory=dict)

    def draft(self, spec: ServerSpec) -> Draft:
        """Judge a definition, but for its exposure."""
        if not spec.enabled:
            return Draft(AcceptedServer(spec))
        refused = tuple(self.refusals(spec))
        try:
            command = self.resolve(spec)
            if isinstance(command, PackageSpec):
                why = f"{command.label} is being installed"
                waits = AcceptedServer(spec, State.INSTALLING, why)
                return Draft(waits, package=command, refused=refused)
            text = render.drop_in(spec, command, self.facts)
        except InstallError as error:
            return Draft(AcceptedServer(spec, State.INSTALL_FAILED, str(error)), refused=refused)
        except UsageError as error:
            clause = str(error).removeprefix(f"{spec.instance}: ")
            return Draft(AcceptedServer(spec), refused=(*refused, clause))
        return Draft(self.startable(spec, tuple(command.argv)), text, refused=refused)

    def startable(self, spec: ServerSpec, argv: tuple[str, ...]) -> AcceptedServer:
        """A server whose unit is there, and may lack a secret only."""
        lack = "; ".join(self.missing_secrets(spec))
        state = State.CREDENTIAL_MISSING if lack else None
        return AcceptedServer(spec, state, lack, argv, newest(spec, self.rotations))
