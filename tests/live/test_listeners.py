"""Listeners that come and go in numbers, and modern servers that take them badly (PROTOCOL E15)."""

import asyncio
import json
from functools import partial

import pytest

from support.bridge import Bridge
from support.client import META, code_of
from support.fakes import echo, entry
from support.waiting import PATIENCE, eventually, remains

MANY = 300
WITHIN = 20 * PATIENCE
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"


def modern(*words, **settings):
    return entry("modern", "files", *words, **settings)


async def listening(client, uri):
    wish = {"notifications": {"resourceSubscriptions": [uri]}}
    stream = await client.open_stream(client.request_of("subscriptions/listen", wish, uri))
    assert (await stream.event(within=WITHIN))["method"] == ACKNOWLEDGED
    return stream


async def asked(client):
    """The wishes that hold at the server, and how often it was asked."""
    found = json.loads(await client.text("listening", within=WITHIN))
    return found["listening"], found["seen"].get("subscriptions/listen", 0)


async def test_listeners_that_come_and_go_together_are_asked_for_together():
    async with Bridge([modern()]) as bridge, bridge.modern("files") as client:
        uris = [f"note:///{number:03}" for number in range(MANY)]
        streams = await asyncio.gather(*(listening(client, uri) for uri in uris))

        async def told():
            wishes, _ = await asked(client)
            return len(wishes) == 1 and wishes[0]["resourceSubscriptions"] == uris

        await eventually(told)
        await client.call("touch", {"uri": uris[7]})
        heard = await streams[7].event(within=WITHIN)
        assert (heard["method"], heard["params"]["uri"]) == (UPDATED, uris[7])
        assert heard["params"]["_meta"][META + "subscriptionId"] == uris[7]
        for stream in streams:
            stream.reset()

        async def forgotten():
            wishes, _ = await asked(client)
            return len(wishes) == 1 and "resourceSubscriptions" not in wishes[0]

        await eventually(forgotten)
        _, times = await asked(client)
        print(f"{times} requests for {2 * MANY} changes")
        assert times <= MANY


@pytest.mark.parametrize("how", ["refuse", "end", "silent"])
async def test_a_server_that_does_not_listen_is_not_asked_in_a_loop(how):
    async with Bridge([modern("--listen", how)]) as bridge, bridge.modern("files") as client:
        stream = await listening(client, "note:///one")
        _, times = await asked(client)

        async def same():
            return (await asked(client))[1] == times

        await remains(same)
        assert times <= 2
        await stream.close()


async def test_changes_of_subscriptions_that_there_are_not_reach_nobody():
    async with Bridge([modern()]) as bridge, bridge.modern("files") as client:
        stream = await listening(client, "foreign:///")
        arguments = {"kind": "updated", "uri": "foreign:///", "count": 10_000}
        await client.call("flood", arguments, within=WITHIN)
        await client.call("touch", {"uri": "foreign:///"})
        assert (await stream.event(within=WITHIN))["method"] == UPDATED
        with pytest.raises(TimeoutError):
            await stream.event(within=0.5)
        await stream.close()


async def test_a_large_change_is_told_to_one_and_not_to_so_many_that_it_would_hold_up_others():
    async with Bridge([echo("files")]) as bridge, bridge.modern("files") as client:
        uris = ["note:///one", *["note:///many"] * 20]
        streams = [await listening(client, uri) for uri in uris]
        large = {"kind": "updated", "count": 1, "pad": 3_000_000}
        for uri in ("note:///many", "note:///one"):
            await client.call("flood", {**large, "uri": uri}, within=WITHIN)
        await client.call("touch", {"uri": "note:///many"})
        heard = [await stream.event(within=WITHIN) for stream in streams]
        assert [len(each["params"].get("pad", "")) for each in heard] == [3_000_000, *[0] * 20]
        assert await bridge.metric("mcp_bridge_dropped_lines_total", reason="flood") == 1
        for stream in streams:
            await stream.close()


async def test_a_server_that_asks_without_an_end_is_given_up():
    async with Bridge([modern()]) as bridge, bridge.session("files") as session:
        answer = await session.call("forever", {}, within=WITHIN)
        assert code_of(answer) == "bad_answer"
        assert int(await session.text("counter")) == 34


@pytest.mark.parametrize("make", [modern, partial(echo, "files")], ids=["modern", "old"])
async def test_what_listeners_and_sessions_subscribe_to_is_bounded_together(make):
    async with Bridge([make()]) as bridge, bridge.modern("files") as client:
        long = "note:///" + "x" * 8000
        streams, refused = [], None
        for number in range(6):
            uris = [f"{long}{number}-{each}" for each in range(30)]
            wish = {"notifications": {"resourceSubscriptions": uris}}
            stream = await client.open_stream(client.request_of("subscriptions/listen", wish))
            streams.append(stream)
            if stream.status != 200:
                refused = await stream.json()
                break
        assert refused is not None
        assert code_of(refused) == "too_many_sessions"
        assert len(streams) == 5  # of 240,000 characters each
        for stream in streams:
            stream.reset()
        async with bridge.session("files") as session:
            answers = [
                await session.request("resources/subscribe", {"uri": f"{long}{number}"})
                for number in range(33)
            ]
        assert [list(answer)[-1] for answer in answers] == ["result"] * 32 + ["error"]
        assert code_of(answers[-1]) == "queue_full"
