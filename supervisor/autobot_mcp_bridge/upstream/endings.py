"""How the program ends, and how one call does: each with a line for people, without any secret."""

from dataclasses import dataclass

# sysexits(3)
DATA, NO_HOST, UNAVAILABLE, TEMPORARY, PROTOCOL, NO_PERMISSION, CONFIG = 65, 68, 69, 75, 76, 77, 78


class EndError(Exception):
    """The program cannot go on.

    Attributes:
        status: its exit status.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(eq=False)
class FailedError(Exception):
    """One message could not be delivered, or got no answer.

    Attributes:
        text: what happened.
        status: the exit status, where this ends the program.
        sent: the upstream may have acted on the message.
        passing: what went wrong was quick, and may be over at the next try.
        http: the HTTP status, if there was an answer.
        retry_after: seconds that the upstream asks to wait for.
        error: the JSON-RPC error that came with it.
    """

    text: str
    status: int = UNAVAILABLE
    sent: bool = True
    passing: bool = False
    http: int | None = None
    retry_after: int | None = None
    error: dict[str, object] | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def is_out_of_reach(self) -> bool:
        """Whether there was no connection at all."""
        return not self.sent and self.http is None


class SessionGoneError(Exception):
    """The upstream no longer knows the session (2025-11-25 basic/transports, Session Management).

    Attributes:
        session: its id.
        sent: the message that met this may have been acted on.
    """

    def __init__(self, session: str, *, sent: bool = False) -> None:
        super().__init__(session)
        self.session = session
        self.sent = sent
