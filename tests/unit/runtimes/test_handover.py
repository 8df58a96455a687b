"""Taking pipes from a launcher, and from one that lies."""

import array
import asyncio
import os
import socket

import pytest

from autobot_mcp_bridge.runtimes.systemd import handover
from support import proc

HELLO = b'{"invocation": "' + b"a" * 32 + b'"}\n'


@pytest.fixture
def listener(tmp_path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "s.sock"))
        made.listen()
        made.settimeout(5)
        yield made


async def fetched(listener, *pieces):
    """What a proxy gets when a launcher sends these pieces, each bytes and descriptors."""

    def serve():
        connection, _ = listener.accept()
        with connection:
            for data, descriptors in pieces:
                ends = array.array("i", descriptors)
                ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, ends)] if descriptors else []
                connection.sendmsg([data], ancillary)

    server = asyncio.create_task(asyncio.to_thread(serve))
    try:
        async with asyncio.timeout(5):
            return await handover.fetch(listener.getsockname())
    finally:
        await server


@pytest.fixture
def pipes():
    """Two pipes, as a launcher makes them; and a check that nobody has kept an end."""
    (stdin, theirs_in), (theirs_out, stdout) = os.pipe(), os.pipe()
    ends = (theirs_in, theirs_out)
    yield ends
    for descriptor in (stdin, stdout, *ends):
        os.close(descriptor)


@pytest.fixture(autouse=True)
def nothing_left_open():
    before = proc.descriptors(os.getpid())
    yield
    assert proc.descriptors(os.getpid()) == before


async def test_the_pipes_come_with_the_invocation_and_the_launchers_pid(listener, pipes):
    handed = await fetched(listener, (HELLO, pipes))

    assert handed.invocation == "a" * 32
    assert handed.pid == os.getpid()
    assert not os.get_inheritable(handed.stdin_fd)
    handed.close()


async def test_a_hello_may_come_in_pieces(listener, pipes):
    handed = await fetched(listener, (HELLO[:5], pipes), (HELLO[5:], ()))

    handed.close()


async def test_the_launchers_error_is_told_in_its_words(listener, pipes):
    with pytest.raises(handover.LaunchError, match="no such program"):
        await fetched(listener, (HELLO, pipes), (b'{"error": "no such program"}\n', ()))


async def test_an_end_without_a_word_means_that_the_unit_was_given_up(listener):
    with pytest.raises(handover.GivenUpError):
        await fetched(listener)


async def test_nobody_listening_is_told_apart(tmp_path):
    with pytest.raises(handover.NotListeningError):
        await handover.fetch(tmp_path / "missing.sock")
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(tmp_path / "gone.sock"))
    with pytest.raises(handover.NotListeningError):
        await handover.fetch(tmp_path / "gone.sock")


@pytest.mark.parametrize(
    "said",
    [b"\n", b"{}\n", b"[1]\n", b'{"invocation": 5}\n', b'{"invocation": "../x"}\n', b"\xff\n",
     HELLO + b"[]\n", HELLO + b'{"error"', b"x" * (handover.MOST + 1)],
)  # fmt: skip
async def test_what_no_launcher_says_is_refused_and_nothing_stays_open(listener, pipes, said):
    with pytest.raises(handover.HandoverError):
        await fetched(listener, (said, pipes))


async def test_too_many_or_too_few_descriptors_are_refused(listener, pipes):
    for descriptors in ((), pipes[:1], (*pipes, *pipes), (*pipes,) * 8):
        with pytest.raises(handover.HandoverError):
            await fetched(listener, (HELLO, descriptors))


async def test_a_launcher_that_says_nothing_is_left_in_time(listener):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await handover.fetch(listener.getsockname())
