"""What one run of the program is told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from autobot_mcp_bridge.model.redact import Redactor
from autobot_mcp_bridge.upstream.reach import Reach

# Bytes of one message either way, unless the program is told otherwise: as the default of caps.line.
MOST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Settings:
    """Where to, with what, and for whom.

    Attributes:
        url: the endpoint.
        headers: sent with every request; secrets stand here, and nowhere else.
        reach: which addresses may be connected to.
        proxy: the URL of an HTTP proxy that makes the connections (CONNECT), or None.
        most: bytes of one message.
        attended: a person's client is on the other side, which starts no second process: the
            program outlives what its upstream does, and says in an answer why it ends.
    """

    url: str
    reach: Reach
    headers: Mapping[str, str] = field(default_factory=dict)
    proxy: str | None = None
    most: int = MOST_BYTES
    attended: bool = False

    @property
    def redact(self) -> Redactor:
        """Takes the headers' texts out of what the upstream says, for a log."""
        return Redactor(word for text in self.headers.values() for word in (text, *text.split()))

    @property
    def place(self) -> str:
        """The upstream for people: without the path and the query, which may hold a key."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"
