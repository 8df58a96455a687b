"""More ways in which one caller, one server or one file could harm the others."""

import asyncio
import json
import os

import pytest

from support import proc
from support.bridge import Bridge
from support.client import answer_to, code_of, dumps, error_of
from support.fakes import echo, hostile
from support.neighbour import Neighbour
from support.waiting import eventually
from support.wire import encode, narrow

QUICK = {"timeouts": {"stop": "500ms", "call": "1s"}}
GOOD = [echo("good")]
ORIGIN = "https://app.example.org"


# Tokens and files


@pytest.mark.parametrize("odd", ["directory", "number", "deep"])
async def test_an_odd_file_beside_the_tokens_holds_up_no_revocation(odd):
    async with Bridge([echo("files")]) as bridge:
        bridge.write([], defaults={})
        bridge.write([echo("files")])
        record = {"id": "a", "sha256": "a" * 64, "created": 1, "expires": 10**400, "label": ""}
        path = bridge.state_dir / "tokens.d" / "odd.json"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if odd == "directory":
            path.mkdir()
        elif odd == "number":
            path.write_text(json.dumps({"version": 1, "tokens": [record]}), encoding="ascii")
        else:
            path.write_text("[" * 100_000, encoding="ascii")
        await eventually(lambda: is_degraded(bridge))
        async with bridge.session("files") as session:
            await session.text("pid")
            bridge.forget_token("files")
            bridge.write([echo("files")])
            await eventually(lambda: is_refused(session))


async def is_degraded(bridge):
    return b"degraded" in (await bridge.health()).body


async def is_refused(session):
    return (await session.send(session.call_of("pid", {}))).status == 401


@pytest.mark.parametrize("name", ["servers.json", "servers.d/odd.json", "host.toml"])
async def test_a_directory_in_the_place_of_a_file_is_told_and_leaks_nothing(name):
    async with Bridge([echo("files")]) as bridge:
        async with bridge.session("files") as session:
            await session.text("pid")
            path = bridge.config_dir / name
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            path.mkdir()
            await eventually(lambda: is_degraded(bridge))
            before = proc.descriptors(bridge.pid)
            for _ in range(5):
                await bridge.reload()
            assert proc.descriptors(bridge.pid) <= before + 1
            assert await session.text("echo", text="x") == "x"
            path.rmdir()
        bridge.write([echo("files")])


async def test_a_token_revoked_while_its_body_comes_calls_nothing():
    async with Bridge([echo("files")]) as bridge, bridge.modern("files") as client:
        counted = int(await client.text("counter"))
        request = client.prepare(client.call_of("counter", {}, 7))
        body = json.dumps(request).encode()
        async with client._connection() as connection:
            head = {**client.headers(request), "Content-Length": str(len(body))}
            lines = [f"POST {client.target} HTTP/1.1", *(f"{k}: {v}" for k, v in head.items())]
            connection.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body[:10])
            await connection.drain()
            bridge.forget_token("files")
            bridge.write([echo("files")])
            await eventually(lambda: is_refused(client))
            connection.send(body[10:])
            assert (await connection.read_head()).status == 401
            connection.reusable = False
        async with bridge.modern("files") as fresh:
            assert int(await fresh.text("counter")) == counted + 1


# One caller


async def test_calls_that_pass_their_deadlines_together_kill_no_server_that_answers_others():
    async with Bridge([echo("files", **QUICK)]) as bridge:
        async with bridge.session("files") as other, bridge.modern("files") as client:
            pid = await other.text("pid")
            calls = [client.send(client.call_of("wait", {"tag": f"{n}"}, n)) for n in range(6)]
            waiting = asyncio.gather(*calls)
            while not waiting.done():
                assert await other.text("pid") == pid
            answers = [answer_to(response, n) for n, response in enumerate(await waiting)]
            assert {code_of(answer) for answer in answers} == {"call_timeout"}
            assert await other.text("pid") == pid
            assert await bridge.metric("mcp_bridge_crashes_total", server="files") == 0


async def test_a_call_cancelled_before_its_server_is_ready_is_never_made():
    async with Bridge([echo("files", "--start", "0.5")]) as bridge:
        async with bridge.session("files") as session:
            os.kill(int(await session.text("pid")), 9)
            await bridge.in_state("files", "sleeping")
            call = asyncio.create_task(session.send(session.call_of("counter", {}, 7)))
            await bridge.in_state("files", "waiting", "starting")
            await session.notify("notifications/cancelled", {"requestId": 7})
            assert code_of(answer_to(await call, 7)) == "cancelled"
            assert await session.text("counter") == "1"


async def test_a_cancellation_finds_the_call_of_its_own_batch():
    async with Bridge([echo("files", timeouts={"call": "30s"})]) as bridge:
        async with bridge.session("files", version="2025-03-26") as session:
            await session.text("pid")
            cancelled = {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": 5},
            }
            batch = [session.call_of("wait", {"tag": "t"}, 5), cancelled]
            (answer,) = json.loads((await session.send(batch)).body)
            assert code_of(answer) == "cancelled"


async def test_a_start_of_a_running_server_leaves_its_idle_stop_on():
    async with Bridge([echo("files", timeouts={"idle": "500ms"})]) as bridge:
        async with bridge.modern("files") as client:
            await client.text("pid")
            await bridge.command("files", "start")
        await bridge.in_state("files", "sleeping", within=10)


# One server


@pytest.mark.parametrize("reply", ["error", "version"])
async def test_a_hello_of_any_depth_is_one_crash_and_leaves_no_process(reply):
    deep = "[" * 200 + "]" * 200
    result = '"result":{"protocolVersion":?,"capabilities":{}}'
    body = result if reply == "version" else '"error":{"code":1,"message":?}'
    line = '{"jsonrpc":"2.0","id":ID,' + body.replace("?", deep) + "}"
    async with Bridge([hostile("says", "bad", line, **QUICK)]) as bridge:
        async with bridge.modern("bad") as client:
            error = error_of(await client.request("server/discover"))
            assert error["data"]["death"]["cause"] == "handshake"
        assert await bridge.metric("mcp_bridge_crashes_total", server="bad") == 1
        await eventually(lambda: not bridge.processes())


@pytest.mark.parametrize("line", ["x", "{", '{"method":"notifications/message"}', "\\ud800"])
async def test_a_flood_of_short_lines_leaves_the_loop_to_others(line):
    bad = hostile("lines_for_ever", "bad", line, timeouts={"stop": "500ms"})
    async with Bridge([bad, *GOOD]) as bridge, Neighbour(bridge) as good:
        async with bridge.session("bad"):  # its own answers come behind its flood
            seen = good.calls
            await eventually(lambda: good.calls > seen + 50, within=20)


async def test_a_status_of_a_task_reaches_its_owner_alone():
    server = echo("files", methods={"allow": ["tasks/*"]})
    async with Bridge([server]) as bridge, bridge.session("files") as owner:
        async with bridge.session("files", token=await bridge.more_token("files")) as other:
            made = '{"task":{"taskId":"t1","status":"working"}}'
            raw = owner.call_of("raw", {"result": made}, 3)
            raw["params"]["task"] = {}
            await owner.send(raw)
            stream, foreign = await owner.listen(), await other.listen()
            status = {"taskId": "t1", "status": "completed"}
            sent = {"method": "notifications/tasks/status", "params": status}
            async with bridge.modern("files") as third:
                await third.text("custom", **sent)
            assert (await stream.event())["params"]["taskId"] == "t1"
            async with bridge.modern("files") as third:
                await third.text("list_changed", tool="new")
            # What comes first on the other's stream is what came second.
            assert (await foreign.event())["method"] == "notifications/tools/list_changed"
            await stream.close()
            await foreign.close()


async def test_idle_sessions_of_one_token_take_nothing_from_anothers_stream():
    host = {"limits": {"stream_bytes": "64K"}}
    async with Bridge([echo("files")], host=host) as bridge:
        greedy = [bridge.session("files") for _ in range(20)]
        for session in greedy:
            await session.__aenter__()
        async with bridge.session("files", token=await bridge.more_token("files")) as reader:
            stream = await reader.listen()
            line = (
                '{"jsonrpc":"2.0","method":"notifications/tools/list_changed","x":"'
                + "y" * 60_000
                + '"}'
            )
            async with bridge.modern("files") as client:
                for _ in range(20):
                    await client.text("say", line=line)
                    assert (await stream.event())["method"] == "notifications/tools/list_changed"
            await stream.close()
        for session in greedy:
            await session.__aexit__(None, None, None)


async def test_large_answers_that_nobody_reads_are_bounded_together():
    big = hostile("big", "bad", "8", timeouts={"stop": "500ms"})
    host = {"http": {"allowed_origins": [ORIGIN]}}
    async with Bridge([big, *GOOD], host=host) as bridge, Neighbour(bridge):
        async with bridge.modern("bad") as client:
            deaf = [await narrow(bridge.base) for _ in range(45)]
            for number, connection in enumerate(deaf):
                message = client.prepare(client.call_of("echo", {}, number))
                headers = {**client.headers(message), "Accept": "application/json"}
                connection.send(encode("POST", client.target, headers, dumps(message)))
            await eventually(lambda: is_full(client), within=30)
            assert proc.rss(bridge.pid) < 700 << 20
            for connection in deaf:
                connection.reset()
            await eventually(lambda: has_room(client), within=30)


async def is_full(client):
    response = await client.send(client.call_of("echo", {}, 1), headers={"Origin": ORIGIN})
    assert response.header("Access-Control-Allow-Origin") == ORIGIN
    return response.status == 503


async def has_room(client):
    return not await is_full(client)
