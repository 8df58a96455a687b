"""How often and how much at once, counted by the real proxy."""

import asyncio

import pytest

from support.bridge import Bridge
from support.client import answer_to, code_of, error_of
from support.policed import manifest, module, policed
from support.waiting import eventually

pytestmark = pytest.mark.asyncio

LIMITED = manifest(rate_limits={"global": "6/hour", "per_tool": {"notes_read_*": "2/hour"}})


@pytest.fixture(params=["session", "modern"])
def era(request):
    return request.param


async def sent(client, tool, arguments=None):
    """Status, Retry-After and answer of one call."""
    response = await client.send(client.call_of(tool, arguments or {}, 5))
    return response.status, response.header("Retry-After"), answer_to(response, 5)


@pytest.mark.requirement("SM-18", "SM-57")
async def test_a_full_window_is_429_with_retry_after_and_names_the_limit(era):
    async with Bridge([policed()], manifests=[LIMITED]) as bridge:
        async with getattr(bridge, era)("notes") as client:
            for _ in range(2):
                assert (await sent(client, "read_note"))[0] == 200
            status, retry_after, answer = await sent(client, "read_note")
            assert status == 429
            assert 0 < int(retry_after) <= 3600
            assert code_of(answer) == "rate_limited"
            error = error_of(answer)
            assert error["message"] == "rate limit of 2/hour for tools notes_read_*"
            assert error["data"]["retry_after"] == int(retry_after)
            # What was refused by the tool's own limit has not been counted by the agent's.
            for _ in range(4):
                assert (await sent(client, "plain"))[0] == 200
            status, _, answer = await sent(client, "plain")
            assert (status, error_of(answer)["message"]) == (
                429,
                "rate limit of 6/hour for this agent",
            )
            assert await bridge.metric(
                "mcp_bridge_calls_total", server="notes", outcome="rate_limited"
            )


async def test_what_an_earlier_step_refuses_is_not_counted(era):
    rules = manifest(
        rate_limits={"global": "2/hour"},
        argument_filters=[{"name": "a", "pattern": "bad"}],
        modules={"notes": module(tool_denylist=["plain"])},
    )
    async with Bridge([policed()], manifests=[rules]) as bridge:
        async with getattr(bridge, era)("notes") as client:
            for tool, arguments, word in (
                ("plain", {}, "tool_denied"),
                ("read_note", {"size": "x"}, "schema_mismatch"),
                ("read_note", {"text": "bad"}, "arguments_refused"),
            ):
                for _ in range(3):
                    assert code_of((await sent(client, tool, arguments))[2]) == word
            assert [(await sent(client, "read_note"))[0] for _ in range(3)] == [200, 200, 429]


async def test_agents_and_tenants_have_windows_of_their_own():
    servers = [
        policed("notes"),
        policed("more", agent={"type": "research", "id": "research-02"}),
        policed("again"),
        policed("notes", tenant="acme", agent={}),
        policed("more", tenant="acme", agent={}),
    ]
    modules = {name: module() for name in ("notes", "more", "again")}
    rules = manifest(modules=modules, rate_limits={"global": "2/hour"})
    host = {"rates": {"tenant": "5/hour"}}
    async with Bridge(servers, host=host, manifests=[rules]) as bridge:

        async def call(instance):
            async with bridge.modern(instance) as client:
                return (await sent(client, "plain"))[0]

        # One agent on two servers has one window; another agent has its own.
        found = [await call("notes"), await call("again"), await call("again"), await call("more")]
        assert found == [200, 200, 429, 200]
        # A tenant's calls to all of its servers are counted together, and no other's with them.
        found = [await call(f"acme.{name}") for name in ("notes", "more", "notes", "more", "notes")]
        assert found == [200] * 5
        assert await call("acme.more") == 429
        assert await call("more") == 200


async def test_callers_of_a_server_are_limited_by_its_definition_and_a_change_counts():
    rates = {"principal": "3/hour", "tools": {"read_*": "1/hour", "*": "2/hour"}}
    server = policed(agent={}, rates=rates)
    async with Bridge([server]) as bridge:
        other = await bridge.more_token("notes")
        async with bridge.modern("notes") as client:
            assert [(await sent(client, "read_note"))[0] for _ in range(2)] == [200, 429]
            assert [(await sent(client, "plain"))[0] for _ in range(3)] == [200, 200, 429]
            async with bridge.session("notes", token=other) as second:
                assert (await sent(second, "read_note"))[0] == 200
            bridge.write([{**server, "rates": {}}])

            async def free():
                return (await sent(client, "plain"))[0] == 200

            await eventually(free, what="the changed definition")


async def test_only_calls_are_counted_and_not_what_asks_for_lists():
    server = policed(agent={}, rates={"principal": "1/hour"})
    async with Bridge([server]) as bridge:
        async with bridge.session("notes") as client:
            for _ in range(3):
                assert await client.tools()
                assert "result" in await client.request("resources/list", {})
            assert "result" in await client.request("resources/read", {"uri": "note:///one"})
            answer = await client.request("prompts/get", {"name": "greet"})
            assert code_of(answer) == "rate_limited"


@pytest.mark.parametrize("sessions", ["shared", "isolated"])
async def test_a_caller_has_only_so_many_calls_in_flight(era, sessions):
    timeouts = {"call": "4s"}  # an open call holds up the end
    server = policed(agent={}, rates={"concurrent": 2}, sessions=sessions, timeouts=timeouts)
    async with Bridge([server]) as bridge:
        async with getattr(bridge, era)("notes") as client:
            waiting = [
                asyncio.ensure_future(client.send(client.call_of("wait", {}, number)))
                for number in (1, 2)
            ]

            async def both():
                return (await bridge.server("notes"))["open_calls"] == 2

            await eventually(both, what="two calls in flight")
            status, retry_after, answer = await sent(client, "plain")
            assert (status, retry_after, code_of(answer)) == (429, "1", "too_many_calls")
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            if era == "modern":  # there a client that goes cancels its calls

                async def room():
                    return (await sent(client, "plain"))[0] == 200

                await eventually(room, what="room for another call")
            else:  # here the server works on, and so the places stay taken
                assert (await sent(client, "plain"))[0] == 429
