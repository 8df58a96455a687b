"""What the proxy says to systemd, and what it is given, over real sockets and descriptors."""

import asyncio
import os
import socket
import subprocess
import sys

import pytest

from autobot_mcp_bridge.proxy.service import Notifier
from support.waiting import eventually


@pytest.fixture
def systemd(tmp_path, monkeypatch):
    """The socket that systemd would read from."""
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(path)
        listener.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        yield listener


def heard(systemd):
    """The next word and how many descriptors came with it, which are closed."""
    data, descriptors, _, _ = socket.recv_fds(systemd, 4096, 8)
    for descriptor in descriptors:
        os.close(descriptor)
    return data.decode(), len(descriptors)


async def test_descriptors_are_stored_by_name_and_removed(systemd):
    notifier = Notifier()
    ends = os.pipe()
    notifier.store("files@0", *ends)
    notifier.remove("files@0")
    for end in ends:
        os.close(end)
    assert heard(systemd) == ("FDSTORE=1\nFDNAME=files@0", 2)
    assert heard(systemd) == ("FDSTOREREMOVE=1\nFDNAME=files@0", 0)
    await notifier.close()


async def test_while_systemd_is_busy_nothing_is_lost_and_the_order_is_kept(systemd):
    notifier = Notifier()
    said = []
    for number in range(2000):
        read, write = os.pipe()
        notifier.store(str(number), read, write)
        os.close(read)
        os.close(write)
        said.append((f"FDSTORE=1\nFDNAME={number}", 2))
        if len(notifier._waiting) > 20:
            break
    assert notifier._waiting, "the queue of a datagram socket is bounded"
    got = []

    def more():
        while len(got) < len(said):
            try:
                got.append(heard(systemd))
            except BlockingIOError:
                return False
        return True

    await eventually(more)
    assert got == said
    assert not notifier._waiting
    await notifier.close()


async def test_its_end_waits_for_what_is_still_to_be_said(systemd):
    notifier = Notifier()
    while not notifier._waiting:
        notifier.remove("x")
    closing = asyncio.create_task(notifier.close())
    count = 0

    def all_heard():
        nonlocal count
        while True:
            try:
                count += heard(systemd)[0].startswith("FDSTOREREMOVE")
            except BlockingIOError:
                return closing.done()

    await eventually(all_heard)
    await closing
    assert count > 1


async def test_without_systemd_nothing_is_said(monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notifier = Notifier()
    notifier.store("x", 0)
    notifier.ready()
    await notifier.close()


async def test_a_systemd_that_is_away_costs_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    notifier = Notifier()
    notifier.store("x", 0)
    notifier.stopping()
    await notifier.close()


def test_sockets_and_stored_descriptors_are_told_apart():
    program = """
import os, socket
from autobot_mcp_bridge.proxy.service import given
listener = socket.create_server(("127.0.0.1", 0))
read, write = os.pipe()
for place, number in enumerate((listener.fileno(), read, write, os.memfd_create("s")), 10):
    os.dup2(number, place)
for place in range(4):
    os.dup2(10 + place, 3 + place)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="4", LISTEN_FDNAMES="http:a@b:a@b:state-1")
found = given()
assert list(found.sockets) == ["http"]
assert found.stored == {"a@b": [4, 5], "state-1": [6]}
assert not any(os.get_inheritable(number) for number in (3, 4, 5, 6))
assert not any(name.startswith("LISTEN") for name in os.environ)
assert given().sockets == {}
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
