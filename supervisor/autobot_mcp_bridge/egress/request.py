"""One request's head, as far as a proxy that only tunnels needs it (RFC 9110 section 9.3.6). Pure."""

import re

from autobot_mcp_bridge.egress.refusals import Reason, RefusedError
from autobot_mcp_bridge.model.destinations import Destination, parse_authority

END = b"\r\n\r\n"
OPEN = b"HTTP/1.1 200 Connection established\r\n\r\n"
_LINE = re.compile(rb"([A-Z]{1,32}) (\S{1,2048}) HTTP/1\.[01]")


def parse(head: bytes) -> Destination:
    """Where the request leads; its headers say nothing that counts.

    Args:
        head: all before the empty line.

    Raises:
        RefusedError: it is no CONNECT, or its target is no host name with a port.
    """
    match = _LINE.fullmatch(head.partition(b"\r\n")[0])
    if match is None:
        raise RefusedError(Reason.BAD_REQUEST)
    method, target = match[1], match[2]
    if method != b"CONNECT":
        raise RefusedError(Reason.NOT_CONNECT)
    text = target.decode("ascii", "replace")
    destination = parse_authority(text)
    if destination is None:
        # An address, for example: entries are names, so that none can name it.
        raise RefusedError(Reason.NOT_LISTED, ascii(text[:100]))
    return destination


def refusal(reason: Reason) -> bytes:
    """The answer to a request that is not let through."""
    text = f"{reason.word}: {reason.text}\n".encode()
    lines = (
        f"HTTP/1.1 {reason.status} {reason.word}",
        *(("Allow: CONNECT",) if reason is Reason.NOT_CONNECT else ()),
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(text)}",
        "Connection: close",
    )
    return "\r\n".join(lines).encode() + END + text


def alert(reason: Reason) -> bytes:
    """A fatal alert of TLS (RFC 8446 section 6), so that a client has an error with a name."""
    unrecognized_name, access_denied = 112, 49
    named = reason in {Reason.NO_SERVER_NAME, Reason.OTHER_SERVER_NAME}
    return bytes((21, 3, 3, 0, 2, 2, unrecognized_name if named else access_denied))
