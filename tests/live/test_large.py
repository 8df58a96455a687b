"""What is large or unread costs the proxy at most four times the limit that it is held to.

Peaks are the kernel's own (VmHWM after clear_refs), above what was resident before.
"""

from contextlib import asynccontextmanager

import pytest

from support import proc
from support.bridge import Bridge
from support.client import META, answer_to, code_of, error_of, text_of
from support.fakes import echo, entry
from support.waiting import PATIENCE, eventually

MIB = 1 << 20
SIZE = 20 * MIB
LINE = 32 * MIB
BODY = 24 * MIB
WIDE = {"line": "32M", "body": "24M", "queue": "32M"}
WITHIN = 30.0 * PATIENCE
MANY = 100_000
UNREAD = 4 * MIB  # limits.stream_bytes
CALLS = 64 * MIB  # notifications of all calls of a server
SERVERS = {
    "handshake": echo("files", caps=WIDE),
    "modern": entry("modern", "files", caps=WIDE),
    "isolated": echo("files", caps=WIDE, sessions="isolated"),
}
ERAS = ("session", "modern")
kinds = pytest.mark.parametrize("kind", SERVERS)
eras = pytest.mark.parametrize("era", ERAS)


@asynccontextmanager
async def served(kind, era, **limits):
    """A proxy, and a client of it that has made a call."""
    async with Bridge([SERVERS[kind], echo("other")], host={"limits": limits}) as bridge:
        make = bridge.session if era == "session" else bridge.modern
        async with make("files") as client:
            await client.text("pid")
            yield bridge, client


@asynccontextmanager
async def at_most(bridge, most, what):
    """The proxy's peak while this goes on is at most so many bytes above what it had."""
    base = proc.rss(bridge.pid)
    proc.forget_peak(bridge.pid)
    yield
    above = proc.peak(bridge.pid) - base
    print(f"{what}: base {base / MIB:.0f} MiB, peak +{above / MIB:.0f} MiB, bar +{most / MIB:.0f}")
    assert above <= most


@kinds
@eras
@pytest.mark.parametrize("form", ["json", "stream"])
async def test_a_result_of_20_mib_costs_at_most_four_times_its_cap(kind, era, form):
    async with served(kind, era) as (bridge, client):
        async with at_most(bridge, 4 * LINE, f"20 MiB result, {kind}, {era}, {form}"):
            message = client.call_of("echo", {"size": SIZE}, 1)
            headers = {"Accept": "text/event-stream"} if form == "stream" else None
            response = await client.send(message, headers=headers, within=WITHIN)
            assert response.is_stream == (form == "stream")
            assert text_of(answer_to(response, 1)) == "x" * SIZE


@kinds
@eras
async def test_a_result_above_its_cap_is_one_error_and_costs_no_more(kind, era):
    async with served(kind, era) as (bridge, client):
        async with at_most(bridge, 4 * LINE, f"33 MiB result, {kind}, {era}"):
            answer = await client.call("echo", {"size": 33 * MIB}, within=WITHIN)
        assert code_of(answer) == "answer_too_large"
        assert error_of(answer)["data"]["cap"] == LINE
        assert await client.text("echo", text="next") == "next"


@kinds
@eras
async def test_an_argument_of_20_mib_arrives_and_one_above_the_cap_is_413(kind, era):
    async with served(kind, era) as (bridge, client):
        async with at_most(bridge, 4 * BODY, f"20 MiB argument, {kind}, {era}"):
            message = client.call_of("length", {"text": "y" * SIZE}, 1)
            response = await client.send(message, within=WITHIN)
            assert text_of(answer_to(response, 1)) == str(SIZE)
        async with at_most(bridge, 4 * BODY, f"25 MiB argument, {kind}, {era}"):
            message = client.call_of("echo", {"text": "y" * 25 * MIB}, 1)
            response = await client.send(message, within=WITHIN)
        assert response.status == 413
        assert str(BODY) in error_of(response.messages[0])["message"]
        assert await client.text("echo", text="next") == "next"


@kinds
@eras
@pytest.mark.parametrize("told", ["progress", "log"])
async def test_notifications_of_a_call_whose_client_never_reads_are_bounded(kind, era, told):
    async with served(kind, era) as (bridge, client):
        message = client.call_of("flood", {"kind": told, "count": MANY}, 1, "t")
        if era == "modern":
            message["params"]["_meta"][META + "logLevel"] = "info"
        client.deaf = True
        async with at_most(bridge, 4 * CALLS, f"{MANY} of {told}, {kind}, {era}"):
            deaf = await client.open_stream(message)
            await flood_is_over(bridge)
        await deaf.close()
        client.deaf = False
        assert await client.text("echo", text="next") == "next"


@kinds
@eras
async def test_changes_for_a_client_that_never_reads_its_stream_are_bounded(kind, era):
    async with served(kind, era) as (bridge, client):
        uri = "note:///one"
        client.deaf = True
        if era == "session":
            await client.request("resources/subscribe", {"uri": uri})
            deaf = await client.listen()
        else:
            wish = {"notifications": {"resourceSubscriptions": [uri]}}
            deaf = await client.open_stream(client.request_of("subscriptions/listen", wish))
        client.deaf = False
        async with at_most(bridge, 4 * UNREAD, f"{MANY} changes, {kind}, {era}"):

            async def flood():
                message = client.call_of("flood", {"kind": "updated", "uri": uri, "count": MANY})
                headers = {"Accept": "application/json"}
                await client.send(message, headers=headers, within=WITHIN)

            await flood()
            # Who does not read is not told when its server has begun to tell: not before the first.
            await flood_is_over(bridge, flood)
        await deaf.close()


async def flood_is_over(bridge, again=None):
    """Most of it was dropped (the kernel holds some thousand), and another server's clients are served meanwhile.

    While nothing was, it is made again.
    """
    async with bridge.session("other") as other:

        async def over():
            assert await other.text("echo", text="meanwhile") == "meanwhile"
            dropped = await bridge.metric("mcp_bridge_dropped_lines_total")
            if not dropped and again is not None:
                await again()
            return dropped >= MANY / 2

        await eventually(over, within=60)
