"""What the endpoint asks of a server's conversations, shared or isolated."""

from collections.abc import Callable
from typing import Any, Protocol

from autobot_mcp_bridge.model.mirrored import Mirrored
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.policy.principals import Principal
from autobot_mcp_bridge.sessions.exchange import Exchange
from autobot_mcp_bridge.sessions.listeners import Listener
from autobot_mcp_bridge.sessions.session import Session, SessionTable

# What a client of the modern era repeats in headers is checked by whoever knows them.
CheckMirrored = Callable[[tuple[Mirrored, ...], dict[str, Any]], None]


class Conversations(Protocol):
    """All clients of one server.

    Attributes:
        sessions: of the handshake era.
        versions: those that a client may speak, newest first.
        open_calls: calls in flight.
        processes: how many run.
    """

    sessions: SessionTable

    @property
    def versions(self) -> tuple[str, ...]: ...

    @property
    def open_calls(self) -> int: ...

    @property
    def processes(self) -> int: ...

    def configure(self, spec: ServerSpec) -> None:
        """Take a changed definition."""
        ...

    def forget(self) -> None:
        """The definition's process changed: what was cached of it counts no more."""
        ...

    async def initialize(
        self, principal: Principal, message: dict[str, Any], client_id: bytes
    ) -> tuple[Session | None, bytes]:
        """Open a session and answer its initialize; None with an answer that refuses it (B11).

        Raises:
            CallError: the server cannot be started, or there are too many sessions.
        """
        ...

    async def begin(
        self, session: Session, message: dict[str, Any], client_id: bytes, *, streamable: bool
    ) -> Exchange | bytes:
        """Send a handshake client's request on; or give its answer at once.

        Raises:
            CallError: it is denied, or there is nobody to answer it.
        """
        ...

    async def begin_modern(
        self,
        principal: Principal,
        message: dict[str, Any],
        client_id: bytes,
        *,
        streamable: bool,
        check: CheckMirrored,
    ) -> Exchange | bytes:
        """As `begin`, for a request of 2026-07-28.

        Args:
            principal: whose it is.
            message: the request.
            client_id: its id, as JSON.
            streamable: whether the client reads a stream.
            check: sees to the headers that mirror parameters of a tool; what it raises passes.

        Raises:
            CallError: as `begin`.
        """
        ...

    def tell(self, session: Session, message: dict[str, Any]) -> None:
        """A client's notification."""
        ...

    async def respond(self, session: Session, message: dict[str, Any]) -> None:
        """A client's answer to a request of the server's; one to nothing is dropped (D3)."""
        ...

    async def listen(self, principal: Principal, message: dict[str, Any]) -> Listener:
        """Open a modern client's stream of changes (E15); the caller ends it by `unlisten`.

        Raises:
            CallError: the server cannot be started, or the request is none.
        """
        ...

    def unlisten(self, listener: Listener) -> None:
        """The stream has ended."""
        ...

    def tools_changed(self) -> None:
        """Other tools are listed from now on, whatever the server says: tell whoever would hear."""
        ...

    def end(self) -> None:
        """End every session and stream."""
        ...

    def suspend(self) -> None:
        """There is no process until further notice: end what cannot be without one (E16)."""
        ...

    def hang_up(self) -> None:
        """End the streams, and no session: whoever reads one opens it again."""
        ...

    def dismiss(self, is_valid: Callable[[Principal], bool]) -> None:
        """End the sessions, streams and open calls of whoever is no longer let in (F7)."""
        ...
