"""subscriptions/listen in front of processes of either era (PROTOCOL E15, E16)."""

import asyncio
import os
import signal

import pytest
import pytest_asyncio

from support.bridge import Bridge
from support.client import META, answer_to, code_of, error_of
from support.eras import conformance, heard, isolated, modern, pid_of
from support.fakes import echo
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
TOOLS = "notifications/tools/list_changed"
PROMPTS = "notifications/prompts/list_changed"
UPDATED = "notifications/resources/updated"
ONE, TWO = "test://one", "test://two"
ERAS = ["old", "new"]
each_era = pytest.mark.parametrize("name", ERAS)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    calm = {"breaker": {"crashes": 50}}
    servers = [conformance("old", "legacy", **calm), conformance("new", "modern", **calm)]
    async with Bridge(servers) as running:
        yield running


class Ear:
    """One listener, and what it has been told."""

    def __init__(self, client, ident="mine", **wish):
        self.client, self.ident, self.wish = client, ident, wish

    async def __aenter__(self):
        message = self.client.request_of(
            "subscriptions/listen", {"notifications": self.wish}, self.ident
        )
        self.stream = await self.client.open_stream(message)
        assert self.stream.status == 200
        self.first = await self.next()
        assert self.first["method"] == ACKNOWLEDGED
        return self

    async def __aexit__(self, *_):
        await self.stream.close()

    async def next(self):
        """The next message; each carries the id that the listener has given itself (E15)."""
        message = await self.stream.event()
        carrier = message.get("params") or message.get("result")
        assert carrier["_meta"][META + "subscriptionId"] == self.ident
        return message

    async def farewell(self):
        """The closing result, after which the stream ends (E16)."""
        message = await self.next()
        assert message["id"] == self.ident
        assert message["result"]["resultType"] == "complete"
        assert await self.stream.event() is None


async def change(client, kind="tool"):
    assert "result" in await client.call(f"test_trigger_{kind}_change")


def uris(*wanted):
    return {"resourceSubscriptions": list(wanted)}


@each_era
@pytest.mark.requirement("E15")
async def test_the_acknowledgement_is_first_and_says_what_is_granted(bridge, name):
    async with modern(bridge, name) as client:
        wish = {"toolsListChanged": True, "promptsListChanged": False, **uris(TWO, ONE, ONE)}
        async with Ear(client, 7, **wish) as ear:
            granted = ear.first["params"]["notifications"]
            assert granted == {"toolsListChanged": True, **uris(ONE, TWO)}


@pytest.mark.requirement("E15")
async def test_what_the_server_is_not_capable_of_is_not_granted():
    async with Bridge([echo("files")]) as bridge, modern(bridge, "files") as client:
        wish = {"toolsListChanged": True, "promptsListChanged": True}
        async with Ear(client, **wish) as ear:
            assert ear.first["params"]["notifications"] == {"toolsListChanged": True}


@each_era
@pytest.mark.requirement("E15")
async def test_a_listener_hears_only_what_it_asked_for(bridge, name):
    async with modern(bridge, name) as client:
        async with Ear(client, toolsListChanged=True) as tools, Ear(client, 2, **uris(ONE)) as one:
            await change(client, "prompt")
            await client.text("gw_update", uri=TWO)
            await client.text("gw_update", uri=ONE)
            await change(client)
            assert (await tools.next())["method"] == TOOLS
            told = await one.next()
            assert (told["method"], told["params"]["uri"]) == (UPDATED, ONE)


@each_era
@pytest.mark.requirement("E15")
async def test_two_listeners_with_equal_ids_are_each_told_once(bridge, name):
    async with modern(bridge, name) as client:
        wish = {"toolsListChanged": True, "promptsListChanged": True}
        async with Ear(client, 1, **wish) as one, Ear(client, 1, **wish) as other:
            await change(client)
            await change(client, "prompt")
            for ear in (one, other):
                assert [(await ear.next())["method"] for _ in range(2)] == [TOOLS, PROMPTS]


@each_era
async def test_handshake_sessions_and_listeners_hear_of_the_same_change(bridge, name):
    async with bridge.session(name) as session, modern(bridge, name) as client:
        stream = await session.listen()
        assert "result" in await session.request("resources/subscribe", {"uri": ONE})
        async with Ear(client, **uris(ONE)) as ear:
            await client.text("gw_update", uri=ONE)
            assert (await ear.next())["params"]["uri"] == ONE
            told = await stream.until(UPDATED)
            assert told["params"] == {"uri": ONE}
        await stream.close()


async def count(client, method):
    return (await heard(client)).count(method)


async def test_a_handshake_process_is_subscribed_once_and_unsubscribed_with_the_last(bridge):
    async with modern(bridge, "old") as client:
        subscribed, gone = "resources/subscribe", "resources/unsubscribe"
        before, left = await count(client, subscribed), await count(client, gone)
        async with Ear(client, **uris("test://x")):
            async with Ear(client, **uris("test://x")):
                assert await count(client, subscribed) == before + 1
            await client.text("gw_pid")
            assert await count(client, gone) == left

        async def unsubscribed():
            return await count(client, gone) == left + 1

        await eventually(unsubscribed)


async def test_a_modern_process_has_one_listen_request_that_is_replaced(bridge):
    async with modern(bridge, "new") as client:
        async with Ear(client, **uris("test://x")):
            listens = await count(client, "subscriptions/listen")
            async with Ear(client, toolsListChanged=True):
                assert await count(client, "subscriptions/listen") == listens
            async with Ear(client, **uris("test://y")):
                assert await count(client, "subscriptions/listen") == listens + 1
                assert int(await client.text("gw_listening")) == 1


async def test_a_change_is_told_once_while_the_request_is_replaced(bridge):
    async with modern(bridge, "new") as client:
        async with Ear(client, **uris(ONE), promptsListChanged=True) as ear:
            for number in range(20):
                async with Ear(client, **uris(f"test://{number}")):
                    await client.text("gw_update", uri=ONE)
            await change(client, "prompt")
            told = [(await ear.next())["method"] for _ in range(21)]
            assert told == [UPDATED] * 20 + [PROMPTS]


async def test_a_listen_request_that_the_server_ends_is_made_again(bridge):
    async with modern(bridge, "new") as client, Ear(client, toolsListChanged=True) as ear:
        await client.text("gw_end_listening")

        async def listening():
            return int(await client.text("gw_listening")) == 1

        await eventually(listening)
        await change(client)
        assert (await ear.next())["method"] == TOOLS


@each_era
async def test_a_listener_survives_the_process_and_hears_that_its_tools_are_others(bridge, name):
    async with modern(bridge, name) as client:
        await client.text("gw_add_tool")
        await client.tools()
        async with Ear(client, toolsListChanged=True, **uris(ONE)) as ear:
            os.kill(await pid_of(client), signal.SIGKILL)

            async def again():
                return "result" in await client.call("gw_pid")

            await eventually(again)
            assert (await ear.next())["method"] == TOOLS
            await client.text("gw_update", uri=ONE)
            assert (await ear.next())["method"] == UPDATED


@each_era
@pytest.mark.requirement("E16")
async def test_a_listener_of_a_server_that_goes_gets_a_closing_result(name):
    era = {"old": "legacy", "new": "modern"}[name]
    server = conformance("files", era)
    other = conformance("other", era)
    for servers in ([other], [{**server, "enabled": False}, other]):
        async with Bridge([server, other]) as bridge, modern(bridge, "files") as client:
            async with Ear(client, toolsListChanged=True) as ear:
                bridge.write(servers)
                await bridge.reload()
                await ear.farewell()


@pytest.mark.requirement("E16")
async def test_a_listener_of_a_stopped_server_and_of_an_ending_proxy_gets_a_closing_result():
    async with Bridge([conformance("files", "modern")]) as bridge:
        async with modern(bridge, "files") as client:
            async with Ear(client, toolsListChanged=True) as ear:
                await bridge.command("files", "stop")
                await ear.farewell()
            await bridge.command("files", "start")
            async with Ear(client, toolsListChanged=True) as ear:
                ending = asyncio.create_task(bridge.stop())
                await ear.farewell()
                assert await ending == 0


@pytest.mark.requirement("F7", "E16")
@pytest.mark.parametrize("make", [conformance, isolated])
async def test_a_revoked_token_ends_its_listeners_and_no_others(make):
    async with Bridge([make("files", "legacy")]) as bridge:
        token = await bridge.more_token("files")
        async with modern(bridge, "files") as mine, modern(bridge, "files", token=token) as other:
            wish = {"toolsListChanged": True}
            async with Ear(mine, **wish) as revoked, Ear(other, **wish) as kept:
                bridge.forget_token("files")
                bridge.write(bridge.servers)
                await bridge.reload()
                await revoked.farewell()
                await change(other)
                assert (await kept.next())["method"] == TOOLS


@pytest.mark.requirement("B7")
async def test_listeners_are_capped_for_a_token_and_one_that_goes_makes_room():
    limits = {"sessions_per_token": 2}
    server = conformance("files", "legacy")
    async with Bridge([server], host={"limits": limits}) as bridge:
        async with modern(bridge, "files") as client, Ear(client, toolsListChanged=True):
            message = client.request_of("subscriptions/listen", {"notifications": {}}, 1)
            async with Ear(client, toolsListChanged=True):
                response = await client.send(message)
                assert response.status == 503
                assert code_of(answer_to(response, 1)) == "too_many_sessions"
                assert response.header("Retry-After") is not None

            async def room():
                stream = await client.open_stream(message)
                await stream.close()
                return stream.status == 200

            await eventually(room)


async def test_a_client_that_takes_no_event_stream_is_406(bridge):
    async with modern(bridge, "old") as client:
        message = client.request_of("subscriptions/listen", {"notifications": {}}, 1)
        response = await client.send(message, headers={"Accept": "application/json"})
        assert response.status == 406


@pytest.mark.parametrize(
    ("params", "place"),
    [
        ({}, "params.notifications"),
        ({"notifications": []}, "params.notifications"),
        ({"notifications": {"toolsListChanged": 1}}, "toolsListChanged"),
        ({"notifications": {"resourceSubscriptions": "x"}}, "resourceSubscriptions"),
        ({"notifications": {"resourceSubscriptions": [1]}}, "resourceSubscriptions"),
        ({"notifications": uris("x" * 9000)}, "resourceSubscriptions"),
        ({"notifications": uris(*map(str, range(1001)))}, "resourceSubscriptions"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_wish_that_is_none_is_refused_with_its_place_and_starts_nothing(params, place):
    async with Bridge([conformance("files", "legacy")]) as bridge:
        async with modern(bridge, "files") as client:
            error = error_of(await client.request("subscriptions/listen", params))
            assert (error["code"], place in error["message"]) == (-32602, True)
            assert (await bridge.server("files"))["starts"] == 0


@pytest.mark.requirement("E13", "E18")
@each_era
async def test_neither_logs_nor_requests_of_the_server_reach_a_listener(bridge, name):
    async with modern(bridge, name) as client, Ear(client, toolsListChanged=True) as ear:
        log = {"level": "error", "data": "x"}
        told = {"method": "notifications/message", "params": log}
        assert "result" in await client.call("gw_tell", told)
        if name == "old":
            assert "error" in await client.text("gw_ask", method="roots/list")
        await change(client)
        assert (await ear.next())["method"] == TOOLS
