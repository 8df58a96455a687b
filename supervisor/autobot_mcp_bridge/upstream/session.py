"""What one session with the upstream is, and the headers that a message of it carries."""

from dataclasses import dataclass, field

from autobot_mcp_bridge.upstream.messages import VERSION_HEADER, Message, mirrored_headers
from autobot_mcp_bridge.upstream.tools import Tools

SESSION_HEADER = "Mcp-Session-Id"
LAST_EVENT_HEADER = "Last-Event-ID"


@dataclass(slots=True)
class Session:
    """Both eras: a message says itself to which it belongs.

    Attributes:
        id: of the handshake session; None: there is none, or the upstream keeps none.
        version: what initialize has negotiated; None: it has not been answered.
        tools: of the upstream.
    """

    id: str | None = None
    version: str | None = None
    tools: Tools = field(default_factory=Tools)

    def headers(self, message: Message) -> dict[str, str]:
        """Those of a message besides what all have."""
        if (stated := message.version) is not None:
            return {VERSION_HEADER: stated, **mirrored_headers(message, self.tools.mirrored)}
        return {} if message.method == "initialize" else self.own_headers

    @property
    def own_headers(self) -> dict[str, str]:
        """Those of the handshake session's own requests."""
        headers = {VERSION_HEADER: self.version} if self.version is not None else {}
        return {**headers, SESSION_HEADER: self.id} if self.id is not None else headers

    def begin(self, answer: Message, session_id: str | None) -> None:
        """Take in the answer to initialize."""
        result = answer.body.get("result")
        version = result.get("protocolVersion") if isinstance(result, dict) else None
        if isinstance(version, str) and version.isascii() and version.isprintable():
            self.version, self.id = version, session_id
