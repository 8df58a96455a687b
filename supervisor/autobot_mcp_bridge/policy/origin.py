"""Host and Origin: the guard against DNS rebinding (A3, A4; 2025-11-25 transports, Security)."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from autobot_mcp_bridge.model.host import Http

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
# Values seen to be good are remembered; a stranger cannot fill this with bad ones.
MAX_REMEMBERED = 256


class OriginRule:
    """Which Host and Origin values are let in.

    Loopback's names always count as hosts; `allowed_hosts` adds others, with a port (only that
    one) or without (any). An absent Origin is let in: only browsers send one.
    """

    def __init__(self, allowed_hosts: Iterable[str], allowed_origins: Iterable[str]) -> None:
        self._hosts = {host.lower() for host in (*LOOPBACK_NAMES, *allowed_hosts)}
        self._origins = {origin.lower().rstrip("/") for origin in allowed_origins}
        self._good: set[str] = set()

    def host_allowed(self, host: str | None) -> bool:
        if host is None:
            return False
        if host in self._good:
            return True
        name = host.lower()
        if name not in self._hosts and _without_port(name) not in self._hosts:
            return False
        if len(self._good) < MAX_REMEMBERED:
            self._good.add(host)
        return True

    def origin_allowed(self, origin: str) -> bool:
        """An origin counts when it is configured, or when it is a page of loopback's own."""
        if origin.lower().rstrip("/") in self._origins:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return (
            parts.scheme in ("http", "https")
            and _without_port(parts.netloc.lower()) in LOOPBACK_NAMES
        )


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def hosts_of(http: Http) -> tuple[str, ...]:
    """The Host values that are let in: the configured ones, and that of the public URL."""
    public = urlsplit(http.public_url or "").netloc
    return (*http.allowed_hosts, public) if public else http.allowed_hosts
