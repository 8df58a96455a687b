"""A channel that an earlier proxy has begun goes on where it was."""

import asyncio
import os

import orjson
import pytest

from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.server import Caps
from autobot_mcp_bridge.runtimes.base import Adopted
from support.waiting import eventually, remains

FIRST = (7 << 32) + 1


class Process:
    """Two pipes without a process; it remembers what it is told."""

    invocation = "0" * 32
    pid = 1

    def __init__(self):
        self.their_stdin, self.stdin_fd = os.pipe()
        self.stdout_fd, self.their_stdout = os.pipe()
        self.rest = ...
        self.tears = []

    def leave(self, rest):
        self.rest = rest

    def tear(self, *, torn):
        self.tears.append(torn)

    def say(self, data):
        os.write(self.their_stdout, data)

    async def read(self):
        return await asyncio.to_thread(os.read, self.their_stdin, 1 << 20)

    def close(self):
        os.close(self.their_stdin)
        os.close(self.their_stdout)


class Opened:
    def __init__(self, process):
        self.process = process
        self.messages = []
        self.dropped = []
        self.channel = None

    async def open(self, rest=b"", *, torn=False, fresh=False):
        adopted = Adopted(self.process, {}, rest, torn, FIRST, current=True)
        self.channel = await Channel.open(
            self.process,
            Caps(),
            attention=asyncio.Event(),
            on_message=lambda _, line: self.messages.append(line),
            on_dropped=self.dropped.append,
            adopted=None if fresh else adopted,
        )
        return self.channel


@pytest.fixture
async def opened():
    process = Process()
    made = Opened(process)
    yield made
    process.close()
    made.channel.close()
    await remains(lambda: True, during=0.01)  # asyncio closes what it has in its next turns


def request():
    return {"jsonrpc": "2.0", "method": "tools/list"}


async def test_its_ids_are_new_ones_and_late_answers_reach_nobody(opened):
    channel = await opened.open()
    call = channel.request(request(), 5)
    assert orjson.loads(await opened.process.read())["id"] == FIRST < 1 << 53
    opened.process.say(b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
    await eventually(lambda: opened.dropped)
    assert opened.dropped == ["late_answer"]
    opened.process.say(b'{"jsonrpc":"2.0","id":%d,"result":{}}\n' % FIRST)
    assert (await call.result()).number == FIRST


async def test_a_line_that_the_proxy_before_had_begun_to_read_is_whole(opened):
    await opened.open(b'{"jsonrpc":"2.0","method":"notifications/x","par')
    opened.process.say(b'ams":{}}\n')
    await eventually(lambda: opened.messages)
    assert opened.messages == [b'{"jsonrpc":"2.0","method":"notifications/x","params":{}}']


async def test_the_end_of_a_line_whose_begin_is_lost_is_noise(opened):
    await opened.open()
    opened.process.say(b'ams":{}}\n{"jsonrpc":"2.0","method":"notifications/y"}\n')
    await eventually(lambda: opened.messages)
    assert opened.messages == [b'{"jsonrpc":"2.0","method":"notifications/y"}']
    assert opened.dropped == ["not_json_rpc"]


async def test_what_may_have_been_written_in_part_is_ended_first(opened):
    channel = await opened.open(torn=True)
    channel.request(request(), 5)
    assert (await opened.process.read()).startswith(b'\n{"jsonrpc"')
    assert opened.process.tears == [False]


async def test_a_line_that_the_pipe_takes_in_part_is_noted_until_it_is_whole(opened):
    channel = await opened.open(fresh=True)
    channel.notify("notifications/x", {"text": "a" * 100_000})
    assert opened.process.tears == [True]
    channel.notify("notifications/x")
    assert opened.process.tears == [True]
    assert not channel.flushed
    got = b""
    while got.count(b"\n") < 2:
        got += await opened.process.read()
    await eventually(lambda: channel.flushed)
    channel.notify("notifications/x")
    assert opened.process.tears == [True, False]


async def test_who_leaves_reads_no_more_and_says_where_it_stands(opened):
    channel = await opened.open(fresh=True)
    opened.process.say(b'{"jsonrpc":"2.0","method":"notifications/x"}\n{"half')
    await eventually(lambda: opened.messages)
    channel.leave()
    assert opened.process.rest == b'{"half'
    opened.process.say(b"way\n")
    await remains(lambda: not opened.dropped, during=0.05)
    assert os.read(opened.process.stdout_fd, 100) == b"way\n"


async def test_a_server_that_does_not_read_is_not_left(opened):
    channel = await opened.open(fresh=True)
    channel.notify("notifications/x", {"text": "a" * 100_000})
    channel.leave()
    assert opened.process.rest is None


async def test_calls_are_given_up_with_a_word_to_the_server(opened):
    channel = await opened.open(fresh=True)
    call = channel.request(request(), 5)
    channel.give_up(CallError(Cause.SHUTTING_DOWN, "the proxy is being restarted"))
    with pytest.raises(CallError) as caught:
        await call.result()
    assert caught.value.cause is Cause.SHUTTING_DOWN
    lines = [orjson.loads(line) for line in (await opened.process.read()).splitlines()]
    assert [line["method"] for line in lines] == ["tools/list", "notifications/cancelled"]
