"""Commands of servers whose units apply has made: the unit knows its own."""

from collections.abc import Iterable

from autobot_mcp_bridge.config.source import AcceptedFile
from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.states import State

# After so long a call that met "installing" may try again.
RETRY_AFTER = 5.0


class Applied:
    """Implements `Packages` of proxy/bridge.py from accepted.json."""

    def __init__(self, accepted: AcceptedFile) -> None:
        self._accepted = accepted

    def command(self, spec: ServerSpec) -> Command:
        """What its unit executes, and nobody here; when it changes, so has the unit.

        Raises:
            CallError: its unit is not there yet, or could not be started.
        """
        server = self._accepted.servers.get(spec.instance)
        if server is None:
            return Command(spec.command)
        text = f"{spec.instance}: {server.why}"
        match server.state:
            case State.INSTALLING:
                raise CallError(Cause.INSTALLING, text, retry_after=RETRY_AFTER)
            case State.INSTALL_FAILED:
                raise CallError(Cause.INSTALL_FAILED, text)
            case State.CREDENTIAL_MISSING:
                raise CallError(Cause.CREDENTIAL_MISSING, text)
        return Command(server.argv or spec.command, rotated=server.rotated)

    async def ensure(self, specs: Iterable[ServerSpec]) -> None:
        """Apply has them installed."""
