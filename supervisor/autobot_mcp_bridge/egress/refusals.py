"""Why a connection is refused: a stable word for logs and metrics, a status, and a sentence."""

from enum import Enum


class Reason(Enum):
    """`(word, HTTP status or 0, sentence for the client)`."""

    BAD_REQUEST = ("bad_request", 400, "this is no CONNECT request of HTTP/1.1")
    NOT_CONNECT = (
        "not_connect",
        405,
        "this proxy takes CONNECT only: plain http:// is not let through, use https://",
    )
    HEAD_TOO_LARGE = ("head_too_large", 431, "the request's head is too large")
    HEAD_TIMEOUT = ("head_timeout", 408, "the request's head did not come in time")
    NOT_LISTED = (
        "not_listed",
        403,
        "network.allow of this server does not name this host and port",
    )
    TOO_MANY = ("too_many", 503, "too many connections are open")
    RESOLVE_FAILED = ("resolve_failed", 502, "the host's name cannot be resolved")
    RESOLVE_TIMEOUT = ("resolve_timeout", 504, "the host's name was not resolved in time")
    NOT_PUBLIC = ("not_public", 403, "the host's name leads to an address that is not public")
    CONNECT_FAILED = ("connect_failed", 502, "the host cannot be reached")
    CONNECT_TIMEOUT = ("connect_timeout", 504, "the host did not answer in time")
    # The tunnel is open, and nothing of it has reached the host. What is not TLS is plain HTTP, as a
    # rule (node asks for http:// by CONNECT, too), and is answered as such; TLS by an alert.
    NOT_TLS = ("not_tls", 403, "this is not TLS: plain http:// is not let through, use https://")
    HELLO_TOO_LARGE = ("hello_too_large", 0, "the ClientHello is too large")
    HELLO_TIMEOUT = ("hello_timeout", 0, "the ClientHello did not come in time")
    NO_SERVER_NAME = ("no_server_name", 0, "the ClientHello names no server")
    OTHER_SERVER_NAME = ("other_server_name", 0, "the ClientHello names another server")
    HIDDEN_SERVER_NAME = ("hidden_server_name", 0, "the ClientHello hides its server (ECH)")
    # It was carried until its entry went.
    NOT_LISTED_ANY_MORE = ("not_listed_any_more", 0, "network.allow does not name it any more")

    def __init__(self, word: str, status: int, text: str) -> None:
        self.word = word
        self.status = status
        self.text = text


class RefusedError(Exception):
    """A connection is not let through.

    Attributes:
        detail: more for the operator, which the server does not get.
    """

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(reason.text)
        self.reason = reason
        self.detail = detail
