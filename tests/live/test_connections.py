"""Connections of strangers: bounded in number, in time, and at the proxy's own end."""

import asyncio
import json

import pytest

from support import proc
from support.bridge import Bridge
from support.client import answer_to, code_of, dumps
from support.fakes import echo, hostile
from support.waiting import eventually
from support.wire import Connection, encode, exchange, narrow


def limits(**values):
    return {"host": {"limits": values}}


async def test_a_connection_without_a_whole_head_is_closed_in_time():
    async with Bridge([echo("files")], **limits(connection_idle="1s")) as bridge:
        for said in (b"", b"POST /t/default/s/files/mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"):
            connection = await Connection.open(bridge.base)
            connection.send(said)
            assert await connection.rest(within=20) == b""
            await connection.close()


async def test_one_connection_too_many_closes_the_oldest_that_has_no_request():
    async with Bridge([echo("files")], **limits(connections=8)) as bridge:
        async with bridge.session("files") as session:
            await session.text("pid")
            stream = await session.listen()  # the eldest, but it is in use
            await session.drop()
            strangers = [await Connection.open(bridge.base) for _ in range(20)]
            assert await strangers[0].rest() == b""
            assert (await exchange(f"{bridge.base}/healthz")).status == 200
            message = session.call_of("log", {"data": "still here"}, 1)
            await session.send(message, headers={"Accept": "application/json"})
            assert (await stream.event())["params"]["data"] == "still here"
            for connection in strangers:
                await connection.close()
            await stream.close()


@pytest.mark.parametrize("form", ["application/json", "text/event-stream"])
async def test_a_client_that_takes_nothing_of_its_answer_is_dropped(form):
    big = hostile("big", "files", "8", caps={"line": "16M"})
    async with Bridge([big], **limits(write_timeout="1s")) as bridge:
        async with bridge.session("files") as session:
            whole = await session.send(session.call_of("echo", {}, 1))
            before = proc.descriptors(bridge.pid)
            message = session.call_of("echo", {}, 2)
            headers = {**session.headers(message), "Accept": form}
            deaf = await narrow(bridge.base)
            deaf.send(encode("POST", session.target, headers, dumps(message)))
            await deaf.drain()
            await eventually(lambda: proc.descriptors(bridge.pid) > before)
            await eventually(lambda: proc.descriptors(bridge.pid) == before, within=20)
            assert len(await deaf.rest(within=20)) < len(whole.body)
            await deaf.close()


async def test_at_its_end_the_proxy_answers_calls_and_ends_streams_first():
    async with Bridge([echo("files", timeouts={"stop": "1s"})]) as bridge:
        async with bridge.session("files") as session:
            await session.text("pid")
            stream = await session.listen()
            call = asyncio.create_task(session.send(session.call_of("wait", {"tag": "t"}, 7)))
            await eventually(lambda: waits(bridge))
            ending = asyncio.create_task(bridge.stop())
            assert code_of(answer_to(await call, 7)) == "server_stopped"
            assert await stream.event() is None
            assert await ending == 0
            await stream.close()


async def waits(bridge):
    async with bridge.modern("files") as client:
        return bool(json.loads(await client.text("state"))["waiting"])
