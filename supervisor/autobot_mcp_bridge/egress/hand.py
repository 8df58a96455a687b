"""Hand the listening socket of one server over to the egress proxy; standard library only.

    python -I -m autobot_mcp_bridge.egress.hand hand|release INSTANCE

mcp-bridge-egress@INSTANCE.service runs it when a server first connects. Descriptor 3 is the socket
(sd_listen_fds(3)). Where no egress proxy takes it, whoever waits is told so.
"""

import socket
import sys
import time
from contextlib import suppress

HANDS = "/run/mcp-bridge/egress/hands.sock"
LISTENER = 3
# Seconds for an egress proxy that is being restarted; it also spaces out the tries of systemd, which
# starts this again for each connection that comes while there is none.
WAIT = 3.0
POLL = 0.1
_TEXT = "no_egress: the egress proxy does not run\n"
ANSWER = (
    "HTTP/1.1 503 no_egress\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    f"Content-Length: {len(_TEXT)}\r\n\r\n{_TEXT}"
).encode()


def send(word: str, instance: str, descriptors: list[int]) -> None:
    """Send one message.

    Raises:
        OSError: nobody takes it.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hands:
        hands.settimeout(WAIT)
        hands.connect(HANDS)
        socket.send_fds(hands, [f"{word} {instance}".encode()], descriptors)


def hand(instance: str) -> int:
    """Hand over; the exit status."""
    deadline = time.monotonic() + WAIT
    while True:
        try:
            send("hand", instance, [LISTENER])
        except OSError as error:
            if time.monotonic() < deadline:
                time.sleep(POLL)
                continue
            sys.stderr.write(f"{instance}: the egress proxy does not run: {error.strerror}\n")
            refuse()
            return 1
        return 0


def refuse() -> None:
    """Answer all connections that wait."""
    with socket.socket(fileno=LISTENER) as listener, suppress(BlockingIOError):
        listener.setblocking(False)
        while True:
            client, _ = listener.accept()
            with client, suppress(OSError):
                client.settimeout(POLL)
                client.sendall(ANSWER)


def main() -> int:
    word, instance = sys.argv[1:]
    if word == "hand":
        return hand(instance)
    with suppress(OSError):  # what holds nothing has nothing to release
        send(word, instance, [])
    return 0


if __name__ == "__main__":
    sys.exit(main())
