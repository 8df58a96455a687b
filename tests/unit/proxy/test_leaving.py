"""How a proxy that is restarted takes leave of its connections."""

import asyncio

import pytest
from aiohttp import web

from autobot_mcp_bridge.model.host import HostLimits
from autobot_mcp_bridge.proxy.connections import Server
from support.waiting import eventually

ASK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
async def server():
    gate = asyncio.Event()

    async def answer(request):
        if request.path == "/slow":
            await gate.wait()
        return web.Response(text="answer")

    made = Server(answer, HostLimits())
    made.gate = gate
    runner = web.ServerRunner(made)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.port = runner.addresses[0][1]
    yield made
    await runner.cleanup()


class Peer:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.writer.close()

    async def open(self, server):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", server.port)
        return self

    async def ask(self, path=""):
        self.writer.write(ASK.replace(b" / ", f" /{path} ".encode()))
        head = await self.reader.readuntil(b"\r\n\r\n")
        await self.reader.readexactly(len(b"answer"))
        return head.decode()


async def test_one_that_is_in_use_hears_of_it_with_its_next_answer_and_then_the_wait_ends(server):
    async with await Peer().open(server) as peer:
        assert "Connection: close" not in await peer.ask()
        leaving = asyncio.create_task(server.leave(notice=60, patience=60))
        await eventually(lambda: server._leaving)
        assert not leaving.done()

        assert "Connection: close" in await peer.ask()
        async with asyncio.timeout(30):
            await leaving


async def test_nobody_is_waited_for_who_has_asked_for_nothing(server):
    async with await Peer().open(server), asyncio.timeout(30):
        await server.leave(notice=60, patience=60)


async def test_an_open_request_is_waited_for_after_the_notice(server):
    async with await Peer().open(server) as peer:
        asked = asyncio.create_task(peer.ask("slow"))
        await eventually(lambda: server._busy)
        leaving = asyncio.create_task(server.leave(notice=0, patience=60))
        await eventually(lambda: server._leaving)
        assert not leaving.done()
        server.gate.set()
        assert "Connection: close" in await asked
        async with asyncio.timeout(30):
            await leaving


async def test_a_connection_that_is_gone_is_remembered_no_longer(server):
    async with await Peer().open(server) as peer:
        await peer.ask()
        assert len(server._answered) == 1
        asked = asyncio.create_task(peer.ask("slow"))
        await eventually(lambda: server._busy)
        peer.writer.transport.abort()
        await asyncio.gather(asked, return_exceptions=True)
        await eventually(lambda: not server._busy)
    assert not server._answered
