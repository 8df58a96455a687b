"""The bounds of the egress proxy: seconds, bytes and numbers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Each bounds one thing that a server or a host could draw out.

    Attributes:
        per_server, together: connections that are open.
        assured: so many of a server are taken although others have all of `together`, so that some
            servers that hold all that they may shut out no other.
        most: open ones in any case; two descriptors each.
        head_bytes: a request's line and headers.
        head, hello: seconds for the request's head, and for the ClientHello after the answer.
        resolve: seconds for a name; resolver threads may go on for as long as glibc does.
        lookups, lookups_per_server: names that are being resolved at once.
        lookups_assured: so many of a server where others take half of them.
        connect: seconds for all addresses of a name together.
        attempt: seconds for one of several addresses.
        say: seconds for a client to take an answer, or a host to take the ClientHello.
        linger, linger_bytes: seconds and bytes for what still comes after a refusal.
        idle: seconds in which nothing moves in either direction.
        chunk: bytes that wait in each direction, beside the kernel's own buffers.
    """

    per_server: int = 64
    together: int = 1024
    assured: int = 8
    most: int = 3072
    head_bytes: int = 8 << 10
    head: float = 10.0
    hello: float = 10.0
    resolve: float = 10.0
    lookups: int = 32
    lookups_per_server: int = 8
    lookups_assured: int = 2
    connect: float = 15.0
    attempt: float = 5.0
    say: float = 10.0
    linger: float = 1.0
    linger_bytes: int = 64 << 10
    idle: float = 300.0
    chunk: int = 32 << 10
