"""The two ends of a channel may be any descriptors."""

import asyncio
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import uvloop

from autobot_mcp_bridge.channels.pipes import Pipes
from support.waiting import eventually

ROUNDS = 10_000  # a second close hits what another thread has opened in about 1 of 300


@contextmanager
def opening_elsewhere(lost):
    """Another thread opens and closes files; `lost` gets what somebody else has closed."""
    ended = threading.Event()

    def work():
        while not ended.is_set():
            descriptor = os.open(os.devnull, os.O_RDONLY)
            try:
                os.close(descriptor)
            except OSError as error:
                lost.append(error)

    with ThreadPoolExecutor(2) as threads:
        works = [threads.submit(work) for _ in range(2)]
        try:
            yield
        finally:
            ended.set()
    for each in works:
        each.result()


def two_pipes():
    (their_stdin, stdin), (stdout, their_stdout) = os.pipe(), os.pipe()
    return stdin, stdout, their_stdin, their_stdout


def one_socket():
    ours, theirs = socket.socketpair()
    stdin, their_stdin = ours.detach(), theirs.detach()
    return stdin, os.dup(stdin), their_stdin, os.dup(their_stdin)


@pytest.mark.requirement("H7", "H1")
@pytest.mark.parametrize("make", [two_pipes, one_socket])
async def test_lines_cross_pipes_and_a_socket_alike(make):
    stdin, stdout, their_stdin, their_stdout = make()
    seen = bytearray()
    ended = asyncio.Event()
    pipes = await Pipes.open(
        stdin, stdout, on_data=seen.extend, on_end=ended.set, on_deaf=lambda: None
    )
    try:
        pipes.write(b'{"jsonrpc":"2.0"}\n')
        os.write(their_stdout, b"there\n")
        await eventually(lambda: bytes(seen) == b"there\n")

        assert os.read(their_stdin, 100) == b'{"jsonrpc":"2.0"}\n'
        assert pipes.writable
        pipes.close_stdin()
        assert not pipes.writable
        assert await asyncio.to_thread(os.read, their_stdin, 100) == b""
        os.write(their_stdout, b"last\n")  # one direction has ended, not the other
        await eventually(lambda: bytes(seen) == b"there\nlast\n")
    finally:
        for descriptor in {their_stdin, their_stdout}:
            os.close(descriptor)
        await eventually(ended.is_set)
        pipes.close()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_each_descriptor_is_closed_once(run):
    lost = []

    async def open_and_close():
        for _ in range(ROUNDS):
            stdin, stdout, *theirs = two_pipes()
            ended = asyncio.Event()
            pipes = await Pipes.open(
                stdin, stdout, on_data=bytes, on_end=lambda: None, on_deaf=ended.set
            )
            pipes.close()
            await ended.wait()
            for descriptor in theirs:
                os.close(descriptor)

    with opening_elsewhere(lost):
        run(open_and_close())

    assert lost == []
