"""Several proxies count together, in a real redis-server; without it nothing is let through."""

import signal

import pytest

from support.bridge import Bridge
from support.client import answer_to, code_of
from support.policed import manifest, policed
from support.redis_server import RedisServer
from support.waiting import eventually

pytestmark = pytest.mark.asyncio

PASSWORD = "p4ssw0rd-of-the-counter"


@pytest.fixture
async def redis(need, tmp_path):
    need("redis")
    tmp_path.chmod(0o755)
    with RedisServer(tmp_path, PASSWORD) as server:
        await eventually(lambda: server.listening, what="redis-server's socket")
        yield server


def proxy(server, **limits):
    rules = manifest(rate_limits=limits, state_backend={"type": "dragonfly", "url": "${STATE_URL}"})
    env = {"MCP_BRIDGE_REDIS_PASSWORD": PASSWORD, "STATE_URL": "redis://elsewhere"}
    host = {"rates": {"redis": server.url}}
    return Bridge([policed()], host=host, env=env, manifests=[rules])


async def sent(bridge, tool="plain"):
    async with bridge.modern("notes") as client:
        response = await client.send(client.call_of(tool, {}, 5))
        answer = answer_to(response, 5)
        return "ok" if "result" in answer else code_of(answer), response


async def test_proxies_share_their_windows_and_count_each_call_once(redis):
    limits = {"global": "5/hour", "per_tool": {"notes_read_*": "1/hour"}}
    async with proxy(redis, **limits) as one, proxy(redis, **limits) as other:
        assert [(await sent(each, "read_note"))[0] for each in (one, other, one)] == [
            *("ok", "rate_limited", "rate_limited")
        ]
        # What the tool's own window refused has not been counted in the agent's.
        found = [(await sent(each))[0] for each in (one, other, one, other, one)]
        assert found == ["ok"] * 4 + ["rate_limited"]
        _, response = await sent(other)
        assert response.status == 429
        assert 3500 < int(response.header("Retry-After")) <= 3600
        assert PASSWORD not in one.log() + other.log()


async def test_a_window_slides_there_as_well(redis):
    async with proxy(redis, **{"global": "2/second"}) as bridge:

        async def refused():
            return (await sent(bridge))[0] == "rate_limited"

        async def allowed():
            return (await sent(bridge))[0] == "ok"

        await eventually(refused, what="a full window")
        await eventually(allowed, what="room again")


@pytest.mark.parametrize("how", ["gone", "frozen"])
async def test_a_counter_that_does_not_answer_lets_nothing_through_until_it_does(redis, how):
    async with proxy(redis, **{"global": "1000/hour"}) as bridge:
        assert (await sent(bridge))[0] == "ok"
        if how == "gone":
            redis.stop()
        else:
            redis.freeze(signal.SIGSTOP)
        word, response = await sent(bridge)
        assert (word, response.status) == ("limits_unavailable", 503)
        assert int(response.header("Retry-After")) >= 1
        if how == "gone":
            redis.start()
        else:
            redis.freeze(signal.SIGCONT)

        async def again():
            return (await sent(bridge))[0] == "ok"

        await eventually(again, what="a counter that answers again")


async def test_without_a_shared_counter_a_manifest_that_wants_one_is_refused():
    rules = manifest(state_backend={"type": "dragonfly", "url": "redis://x"})
    async with Bridge([policed()], manifests=[rules]) as bridge:
        assert (await sent(bridge))[0] == "tool_denied"
        assert "$.state_backend.type: rates.redis of host.toml" in bridge.log()
