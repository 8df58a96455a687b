"""Hosts and names for servers in a container of the lab: what stands for the Internet there.

The hosts' addresses are those of AS112 (RFC 7535), which are public by their registry and nobody's
in particular. They mean something in the lab's namespaces only, from which no way leads out.
"""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Self

from lab import network
from support.product import Product, socket_in

PUBLIC = "192.175.48.10"
PRIVATE = str(network.BRIDGE_ADDRESS)
_A = 1
_NO_SUCH_NAME = 3
_WITHIN = 30.0


class Outside:
    """A TLS server on a public and a private address, and a name server on the container's own."""

    resolver = "127.0.0.1"

    def __init__(self, product: Product, context: ssl.SSLContext) -> None:
        self.names: dict[str, list[list[str]]] = {}
        self.asked: list[str] = []
        self.product = product
        self._context = context
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        container = self.product.container
        lab = container.place.lab
        network.inside(lab, "ip", "addr", "replace", f"{PUBLIC}/24", "dev", "br0").checked()
        container.check("ip", "route", "replace", "192.175.48.0/24", "dev", "host0")
        said = f"nameserver {self.resolver}\noptions attempts:1 timeout:5\n"
        container.write("/etc/resolv.conf", said)
        namespace = network.NAMESPACES / lab.network
        for address in (PUBLIC, PRIVATE):
            listener = self._stack.enter_context(socket_in(namespace))
            listener.setblocking(True)
            listener.bind((address, 443))
            listener.listen(32)
            self._run(listener, lambda one=listener: self._serve(one))
        names = self._stack.enter_context(self.product.dial(socket.SOCK_DGRAM))
        names.setblocking(True)
        names.bind((self.resolver, 53))
        self._run(names, lambda: self._answer(names))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def say(self, names: Mapping[str, Sequence[Sequence[str]]]) -> None:
        """Have these names, and no others: an answer for each question, the last one for good."""
        self.names = {name: [list(answer) for answer in names[name]] for name in names}
        self.asked = []

    def _run(self, made: socket.socket, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        self._stack.callback(thread.join, _WITHIN)
        # Wakes the thread, which a close alone does not.
        self._stack.callback(lambda: _shut_down(made))

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._greet, args=(client,), daemon=True).start()

    def _greet(self, client: socket.socket) -> None:
        client.settimeout(_WITHIN)
        with suppress(OSError), self._context.wrap_socket(client, server_side=True) as inner:
            data = b""
            while b"\r\n\r\n" not in data and (more := inner.recv(4096)):
                data += more
            if data:
                body = f"reached {inner.getsockname()[0]}"
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close"
                inner.sendall(f"{head}\r\n\r\n{body}".encode())

    def _answer(self, names: socket.socket) -> None:
        while True:
            try:
                question, sender = names.recvfrom(512)
            except OSError:
                return
            if not question:
                return
            names.sendto(self._reply(question), sender)

    def _reply(self, question: bytes) -> bytes:
        """RFC 1035 section 4: the question again, and the addresses."""
        at, labels = 12, []
        while size := question[at]:
            labels.append(question[at + 1 : at + 1 + size].decode("ascii"))
            at += 1 + size
        (kind,) = struct.unpack_from(">H", question, at + 1)
        name = ".".join(labels).lower()
        found: list[str] = []
        if kind == _A and (answers := self.names.get(name)):
            self.asked.append(name)
            found = answers.pop(0) if len(answers) > 1 else answers[0]
        status = 0 if name in self.names else _NO_SUCH_NAME
        head = struct.pack(">2sHHHHH", question[:2], 0x8180 | status, 1, len(found), 0, 0)
        records = b"".join(
            struct.pack(">HHHIH4s", 0xC00C, _A, 1, 0, 4, socket.inet_aton(address))
            for address in found
        )
        return head + question[12 : at + 5] + records


def _shut_down(made: socket.socket) -> None:
    with suppress(OSError):  # a datagram socket says so, and wakes its reader all the same
        made.shutdown(socket.SHUT_RDWR)
