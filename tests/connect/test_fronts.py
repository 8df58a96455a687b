"""nginx and Caddy in front, by the files of examples/: what reaches whom, and in what order."""

import asyncio

import pytest
import pytest_asyncio

from support.audited import calls
from support.bridge import Bridge
from support.client import text_of
from support.fakes import echo
from support.fronts import CLIENT, NAME, dial, front
from support.waiting import PATIENCE, eventually
from support.wire import Connection

pytestmark = pytest.mark.asyncio(loop_scope="module")

SPOOFED = "203.0.113.66"
BEYOND = 60.0 * PATIENCE  # what may pass beyond a wait that is meant
# Seconds: of silent calls, and of an idle stream; the long ones exceed the time-outs that fronts have at first.
LONG = [(3.0, 4.0), pytest.param(90.0, 120.0, marks=pytest.mark.soak)]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["nginx", "caddy"])
async def fronted(request, need, tmp_path_factory):
    program = need(request.param)
    host = {"http": {"allowed_hosts": [NAME], "trusted_proxies": ["127.0.0.1"]}}
    folder = tmp_path_factory.mktemp(request.param)
    async with Bridge([echo("files", timeouts={"call": "10m"})], host=host) as bridge:
        async with front(request.param, program, bridge, folder) as running:
            yield running


async def test_calls_of_both_eras_arrive_over_kept_connections(fronted, record_property):
    failed = 0
    async with fronted.session("files") as session, fronted.modern("files") as modern:
        for client in (session, modern):
            for number in range(20):
                failed += await client.text("echo", text=f"t{number}") != f"t{number}"
    record_property("failed_calls", failed)
    assert failed == 0


async def test_an_event_arrives_before_what_comes_after_it_is_made(fronted):
    """The server goes on only once its client has got the event: none was held back."""
    async with fronted.session("files") as session, fronted.session("files") as other:
        arguments = {"steps": 1, "then": "wait", "nonce": "k"}
        message = session.call_of("progress", arguments, 7, progress="p")
        stream = await session.open_stream(message)
        event = await stream.until("notifications/progress")
        assert event["params"]["progressToken"] == "p"
        await other.text("release", tag="k")
        assert (await stream.until(7))["result"]
        stream.reset()


async def silent(fronted, seconds, accept):
    """A call that says nothing for so long, and is answered then."""
    async with fronted.session("files") as session:
        message = session.call_of("echo", {"text": "at last", "delay": seconds}, 1)
        headers: dict[str, str | None] = {"Accept": accept}
        answer = await session.send(message, headers=headers, within=seconds + BEYOND)
        assert answer.status == 200
        assert text_of(answer.messages[-1]) == "at last"


async def idle(fronted, seconds):
    """A stream on which nothing happens for so long, and which has an event then."""
    async with fronted.session("files") as listener:
        stream = await listener.listen()
        await silent(fronted, seconds, "application/json")
        async with fronted.session("files") as caller:
            await caller.text("list_changed", tool="late")
        event = await stream.event()
        assert event["method"] == "notifications/tools/list_changed"
        stream.reset()


@pytest.mark.parametrize(("calls", "stream"), LONG)
async def test_silent_calls_and_an_idle_stream_survive(fronted, calls, stream):
    async with asyncio.TaskGroup() as group:
        group.create_task(silent(fronted, calls, "application/json"))
        group.create_task(silent(fronted, calls, "application/json, text/event-stream"))
        group.create_task(idle(fronted, stream))


async def logged(bridge, path):
    """The address of the last request for this path in the access log."""

    async def line():
        lines = [line for line in bridge.log().splitlines() if f" GET {path} " in line]
        return lines[-1] if lines else None

    return (await eventually(line, what=path)).split()[1]


async def test_the_clients_address_is_in_the_log_and_none_that_it_makes_up(fronted):
    bridge = fronted.bridge
    async with fronted.modern("files") as client:
        await client.send(method="GET", target="/t/default/s/plain/mcp")
        assert await logged(bridge, "/t/default/s/plain/mcp") == CLIENT
        for number, value in enumerate([SPOOFED, f"{SPOOFED}, 127.0.0.1", f"127.0.0.1, {SPOOFED}"]):
            path = f"/t/default/s/spoofed-{number}/mcp"
            headers: dict[str, str | None] = {"X-Forwarded-For": value}
            await client.send(method="GET", target=path, headers=headers)
            assert await logged(bridge, path) == CLIENT
        await client.text("echo", text="recorded")
        await eventually(lambda: calls(bridge, tool="echo", client=CLIENT), what="a record of it")


async def test_who_comes_past_the_front_is_not_believed_either(fronted):
    bridge = fronted.bridge
    connection = await Connection.open(bridge.base, dial)
    path = "/t/default/s/direct/mcp"
    await connection.request("GET", path, {"Host": "localhost", "X-Forwarded-For": SPOOFED})
    await connection.close()
    assert await logged(bridge, path) == CLIENT


async def test_host_and_origin_are_judged_behind_the_front(fronted):
    async with fronted.modern("files") as client:
        message = client.call_of("echo", {"text": "x"})
        assert (await client.send(message)).status == 200
        foreign = await client.send(message, headers={"Origin": "https://elsewhere.example"})
        assert foreign.status == 403
        other = await client.send(message, headers={"Host": "elsewhere.example"})
        assert other.status != 200 or not other.body  # Caddy answers a foreign host by itself


async def test_a_body_as_large_as_the_bridge_takes_passes(fronted):
    async with fronted.session("files") as session:
        text = "x" * (3 << 20)
        assert await session.text("length", text=text) == str(len(text))
