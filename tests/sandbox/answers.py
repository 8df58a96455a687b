"""Answers what is asked of it: UDP with the same bytes, a connection by taking it.

    answers.py PORT ADDRESS...     # an address may be @NAME, an abstract one of AF_UNIX

Prints `ready`, and goes on until it is ended. Standard library only: it runs in the lab's network
and in its containers.
"""

import selectors
import socket
import sys


def main():
    port, addresses = int(sys.argv[1]), sys.argv[2:]
    waiting = selectors.DefaultSelector()
    for address in addresses:
        if address.startswith("@"):
            made = socket.socket(socket.AF_UNIX)
            made.bind("\0" + address[1:])
            made.listen()
            waiting.register(made, selectors.EVENT_READ)
            continue
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            made = socket.socket(family, kind)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(socket.getaddrinfo(address, port, family)[0][4])
            if kind == socket.SOCK_STREAM:
                made.listen()
            waiting.register(made, selectors.EVENT_READ)
    print("ready", flush=True)
    while True:
        for key, _ in waiting.select():
            if key.fileobj.type == socket.SOCK_STREAM:
                key.fileobj.accept()[0].close()
            else:
                data, whom = key.fileobj.recvfrom(512)
                key.fileobj.sendto(data, whom)


if __name__ == "__main__":
    main()
