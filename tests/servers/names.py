"""A resolver on 127.0.0.1:53 that has one address for every name (RFC 1035)."""

import socket
import struct

ADDRESS = "127.0.0.9"
_A = 1


def answer(question: bytes) -> bytes:
    end = question.index(b"\0", 12) + 5
    (kind,) = struct.unpack_from(">H", question, end - 4)
    found = kind == _A
    head = question[:2] + struct.pack(">HHHHH", 0x8180, 1, found, 0, 0)
    record = struct.pack(">HHHIH", 0xC00C, _A, 1, 60, 4) + socket.inet_aton(ADDRESS)
    return head + question[12:end] + record * found


def main() -> None:
    listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listening.bind(("127.0.0.1", 53))
    while True:
        question, peer = listening.recvfrom(512)
        listening.sendto(answer(question), peer)


if __name__ == "__main__":
    main()
