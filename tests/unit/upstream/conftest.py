"""A stdio client of the relay, in front of a far end that does as it is told (support/far.py)."""

import json

import orjson
import pytest

from autobot_mcp_bridge.model.addresses import listed
from autobot_mcp_bridge.upstream import calls, listening
from autobot_mcp_bridge.upstream.client import Client
from autobot_mcp_bridge.upstream.reach import Reach
from autobot_mcp_bridge.upstream.relay import Relay
from autobot_mcp_bridge.upstream.settings import Settings
from support.far import OPENING, OWN_META, Far
from support.waiting import eventually


class Written:
    """In the place of stdout."""

    def __init__(self):
        self.lines = []

    async def write(self, line):
        assert b"\n" not in line
        self.lines.append(line)

    @property
    def messages(self):
        return [orjson.loads(line) for line in self.lines]

    async def answer(self, ident):
        def found():
            return [m for m in self.messages if m.get("id") == ident and "method" not in m]

        await eventually(found, what=f"the answer to {ident}")
        (only,) = found()
        return only


class Talk:
    def __init__(self, relay, out):
        self.relay, self.out = relay, out

    async def take(self, **message):
        await self.relay.take(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def ask(self, method, params=None, ident=1):
        await self.take(id=ident, method=method, params=params or {})
        return await self.out.answer(ident)

    async def modern(self, method, params=None, ident=1):
        return await self.ask(method, {**(params or {}), "_meta": OWN_META}, ident)

    async def open(self):
        await self.ask("initialize", OPENING, "init")
        await self.take(method="notifications/initialized")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(calls, "PAUSES", (0.01, 0.02))
    monkeypatch.setattr(calls, "RETRY", 0.01)
    monkeypatch.setattr(listening, "RETRY", 0.01)


@pytest.fixture
async def far():
    async with Far() as running:
        yield running


@pytest.fixture
async def talk(far):
    settings = Settings(
        far.url, Reach((listed("127.0.0.1"),), plain=True), {"X-Own": "a"}, most=5000
    )
    async with Client(settings) as client:
        out = Written()
        relay = Relay(settings, client, out)
        yield Talk(relay, out)
        await relay.close()


@pytest.fixture
async def attended(far):
    reach = Reach((listed("127.0.0.1"),), plain=True)
    async with Client(settings := Settings(far.url, reach, attended=True)) as client:
        out = Written()
        relay = Relay(settings, client, out)
        yield Talk(relay, out)
        await relay.close()
