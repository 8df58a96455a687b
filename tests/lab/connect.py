"""Connect to an address and hand the socket over: the part of network.py that runs within."""

import socket
import sys

CONNECT_TIMEOUT = 5.0  # a container of the lab answers at once, or nothing listens


def main(descriptor: str, address: str, port: str) -> None:
    with socket.socket(fileno=int(descriptor)) as asked:
        with socket.create_connection((address, int(port)), timeout=CONNECT_TIMEOUT) as made:
            made.settimeout(None)
            socket.send_fds(asked, [b"."], [made.fileno()])


if __name__ == "__main__":
    main(*sys.argv[1:])
