"""Isolated servers: a process for each handshake session and for each modern caller (B13, E21)."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
import pytest_asyncio

from support.bridge import Bridge
from support.client import answer_to, code_of, dumps, error_of, text_of
from support.eras import FEATURES, NAME, conformance, heard, isolated, modern, pid_of
from support.fakes import echo, hostile
from support.proc import alive
from support.waiting import eventually
from support.wire import encode

pytestmark = pytest.mark.asyncio(loop_scope="module")

CALM = {"breaker": {"crashes": 50}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    servers = [isolated("old", "legacy", **CALM), isolated("new", "modern", **CALM)]
    async with Bridge(servers) as running:
        yield running


def restricted(name, era):
    return isolated(name, era, tools={"allow": ["gw_*"], "deny": ["gw_crash"]})


# ---- a process for each ----


@pytest.mark.requirement("B13")
async def test_each_session_has_a_process_of_its_own_and_keeps_it(bridge):
    async with bridge.session("old") as one, bridge.session("old") as other:
        first, second = await pid_of(one), await pid_of(other)
        assert first != second
        assert (await pid_of(one), await pid_of(other)) == (first, second)


@pytest.mark.requirement("E21")
@pytest.mark.parametrize("name", ["old", "new"])
async def test_each_modern_caller_has_a_process_of_its_own(bridge, name):
    token = await bridge.more_token(name)
    async with modern(bridge, name) as one, modern(bridge, name, token=token) as other:
        first, second = await pid_of(one), await pid_of(other)
        assert first != second
        assert (await pid_of(one), await pid_of(other)) == (first, second)


async def test_a_handshake_server_has_a_process_for_each_set_of_features(bridge):
    async with modern(bridge, "old") as plain, modern(bridge, "old", roots={}) as rooted:
        assert await pid_of(plain) != await pid_of(rooted)


async def test_a_modern_server_has_one_process_for_all_features_of_a_caller(bridge):
    async with modern(bridge, "new") as plain:
        pid = await pid_of(plain)
        async with modern(bridge, "new", roots={}) as rooted:
            assert await pid_of(rooted) == pid


# ---- everything passes ----


@pytest.mark.requirement("B2", "D4")
async def test_the_servers_own_initialize_answer_and_the_clients_own_words_pass(bridge):
    async with bridge.session("old", version="2025-03-26") as session:
        assert session.version == "2025-03-26"
        assert session.initialized["instructions"] == "A server for tests."
        await session.notify("notifications/roots/list_changed")
        await session.notify("notifications/of/an/extension", {"a": 1})
        told = await heard(session)
        assert told[:2] == ["initialize", "notifications/initialized"]
        assert {"notifications/roots/list_changed", "notifications/of/an/extension"} <= set(told)


@pytest.mark.requirement("D3")
async def test_a_request_of_the_servers_comes_on_the_stream_of_the_only_call(bridge):
    async with bridge.session("old") as session, bridge.session("old") as other:
        message = session.call_of("test_elicitation", {"message": "?"}, 1)
        stream = await session.open_stream(message)
        asked = await stream.until("elicitation/create")
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": NAME}
        await other.send(answer)  # of no request that this session was sent
        await session.send(answer)
        done = await stream.until(1)
        assert "Ada" in text_of(done)
        await session.send(answer)  # to nothing any more
        await stream.close()
        assert await session.text("gw_echo", value="x") == '"x"'


@pytest.mark.requirement("H6")
async def test_the_time_of_a_call_stands_still_while_its_user_is_asked():
    quick = isolated("files", "legacy", timeouts={"call": "1s"}, **CALM)
    async with Bridge([quick]) as bridge, bridge.session("files") as session:
        message = session.call_of("test_elicitation", {"message": "?"}, 1)
        stream = await session.open_stream(message)
        asked = await stream.until("elicitation/create")
        late = await session.call("gw_sleep", {"seconds": 60})  # began later, and is not waited for
        assert code_of(late) == "call_timeout"
        await session.send({"jsonrpc": "2.0", "id": asked["id"], "result": NAME})
        assert "Ada" in text_of(await stream.until(1))
        await stream.close()


@pytest.mark.requirement("D3")
async def test_a_client_is_not_asked_for_what_it_has_not_declared(bridge):
    async with bridge.session("old", opened=False) as session:
        session.capabilities = {}
        await session.initialize()
        answer = await session.call("gw_ask", {"method": "elicitation/create"})
        assert "no client is there to answer this" in json.dumps(answer)
    async with bridge.session("old") as session:
        message = session.call_of("gw_ask", {"method": "elicitation/create"}, 1)
        stream = await session.open_stream(message)
        await stream.until("elicitation/create")
        await stream.close()


@pytest.mark.requirement("D3", "A8")
async def test_a_request_of_the_servers_comes_on_the_get_stream_of_a_client_of_json(bridge):
    async with bridge.session("old") as session:
        stream = await session.listen()
        message = session.call_of("gw_ask", {"method": "roots/list"}, 1)
        call = asyncio.create_task(session.send(message, headers={"Accept": "application/json"}))
        asked = await stream.until("roots/list")
        await session.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}})
        assert json.loads(text_of(answer_to(await call, 1))) == {"roots": []}
        await stream.close()


@pytest.mark.requirement("H8")
async def test_a_ping_is_for_the_client_where_it_reads_and_else_for_the_proxy(bridge):
    async with bridge.session("old") as session:
        message = session.call_of("gw_ask", {"method": "ping"}, 1)
        response = await session.send(message, headers={"Accept": "application/json"})
        assert json.loads(text_of(answer_to(response, 1))) == {}
        stream = await session.open_stream(session.call_of("gw_ask", {"method": "ping"}, 2))
        asked = await stream.until("ping")
        await session.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"by": "client"}})
        assert json.loads(text_of(await stream.until(2))) == {"by": "client"}
        await stream.close()


@pytest.mark.requirement("C5")
async def test_what_the_server_says_right_after_its_first_words_is_kept_for_the_client():
    async with (
        Bridge([hostile("chatty", sessions="isolated")]) as bridge,
        bridge.session("chatty") as session,
    ):
        stream = await session.listen()
        assert (await stream.event())["method"] == "notifications/message"
        await stream.close()


@pytest.mark.requirement("D2")
async def test_a_cancellation_reaches_the_server_under_its_own_id(bridge):
    async with bridge.session("old") as session:
        sleep = session.call_of("gw_sleep", {"seconds": 60, "tag": "x"}, "mine")
        call = asyncio.create_task(session.send(sleep))

        async def stands(word):
            return json.loads(await session.text("gw_sleeps")).get("x") == word

        await eventually(lambda: stands("started"))
        await session.notify("notifications/cancelled", {"requestId": "mine"})
        assert code_of(answer_to(await call, "mine")) == "cancelled"
        await eventually(lambda: stands("cancelled"))


@pytest.mark.requirement("G4")
async def test_initialize_at_a_modern_server_names_the_versions_and_is_no_crash(bridge):
    async with bridge.session("new", opened=False) as session:
        before = (await bridge.server("new"))["crashes"]
        response = await session.send(session.initialize_of(1))
        assert response.header("Mcp-Session-Id") is None
        error = error_of(answer_to(response, 1))
        assert (error["code"], error["data"]["supported"]) == (-32022, ["2026-07-28"])
        assert (await bridge.server("new"))["crashes"] == before


# ---- the session and its process end together ----


@pytest.mark.requirement("C12", "B4")
async def test_a_killed_process_fails_its_calls_and_ends_its_session_alone(bridge):
    async with bridge.session("old") as session, bridge.session("old") as other:
        pid, _ = await pid_of(session), await pid_of(other)
        stream = await session.listen()
        sleep = session.call_of("gw_sleep", {"seconds": 60}, 1)
        call = asyncio.create_task(session.send(sleep))
        row = bridge.server

        async def called():
            return (await row("old"))["open_calls"] > 0

        await eventually(called)
        os.kill(pid, signal.SIGKILL)
        assert code_of(answer_to(await call, 1)) == "server_crashed"
        assert await stream.event() is None
        await stream.close()

        async def unknown():
            return (await session.send(session.call_of("gw_pid", {}))).status == 404

        await eventually(unknown)
        assert await pid_of(other) > 0


@pytest.mark.requirement("E22")
async def test_the_next_modern_request_after_a_crash_gets_a_new_process(bridge):
    async with modern(bridge, "old") as client:
        pid = await pid_of(client)
        assert code_of(await client.call("gw_crash")) == "server_crashed"
        assert await pid_of(client) != pid


@pytest.mark.requirement("B6")
async def test_delete_ends_the_process(bridge):
    async with bridge.session("old") as session:
        pid = await pid_of(session)
        assert (await session.delete()).status == 204
        await eventually(lambda: not alive(pid))


async def test_an_idle_process_ends_and_its_session_with_it():
    server = isolated("brief", "legacy", timeouts={"idle": "300ms"})
    async with Bridge([server]) as bridge, bridge.session("brief") as session:
        pid = await pid_of(session)
        await eventually(lambda: not alive(pid), within=10)

        async def gone():
            return (await bridge.server("brief"))["sessions"] == 0

        await eventually(gone)
        assert (await session.send(session.call_of("gw_pid", {}))).status == 404
        async with modern(bridge, "brief") as client:
            first = await pid_of(client)
            await eventually(lambda: not alive(first), within=10)
            assert await pid_of(client) != first


async def test_a_workspace_is_private_empty_and_removed(bridge):
    async with bridge.session("old") as one, bridge.session("old") as other:
        first, second = [json.loads(await each.text("gw_files")) for each in (one, other)]
        assert first["cwd"] != second["cwd"]
        assert (first["mode"], first["files"], second["files"]) == (0o700, ["tmp"], ["tmp"])
        assert "left" in json.loads(await one.text("gw_files"))["files"]
        await one.delete()
        await eventually(lambda: not Path(first["cwd"]).exists())
        assert "left" in json.loads(await other.text("gw_files"))["files"]


# ---- bounds ----


@pytest.mark.requirement("B7")
async def test_processes_are_capped_for_a_token_and_for_a_server():
    limits = {"isolated_per_token": 2, "isolated_per_server": 3}
    server = isolated("few", "legacy")
    async with Bridge([server], host={"limits": limits}) as bridge:
        token = await bridge.more_token("few")
        async with bridge.session("few"), bridge.session("few") as second:
            for client in (bridge.session("few", opened=False), modern(bridge, "few")):
                message = client.call_of("gw_pid", {}, 1)
                if not hasattr(client, "features"):
                    message = client.initialize_of(1)
                response = await client.send(message)
                assert response.status == 503
                assert code_of(answer_to(response, 1)) == "too_many_sessions"
                assert int(response.header("Retry-After")) > 0
                await client.drop()
            async with bridge.session("few", token=token):
                over = bridge.session("few", token=token, opened=False)
                assert (await over.send(over.initialize_of(1))).status == 503
                await over.drop()
            await second.delete()

            async def room():
                async with bridge.session("few", opened=False) as again:
                    return (await again.send(again.initialize_of(1))).status == 200

            await eventually(room)


@pytest.mark.requirement("B7")
async def test_starts_that_their_clients_have_left_count_until_they_have_ended():
    limits = {"isolated_per_token": 2}
    server = echo("slow", "--start", "2", sessions="isolated")
    async with Bridge([server], host={"limits": limits}) as bridge:
        for _ in range(2):
            number = len(bridge.processes())
            session = bridge.session("slow", opened=False)
            connection = await session.take_connection()
            body = dumps(session.initialize_of(1))
            connection.send(encode("POST", session.target, session.headers(body), body))
            await eventually(lambda number=number: len(bridge.processes()) > number)
            connection.reset()
        async with bridge.session("slow", opened=False) as third:
            assert (await third.send(third.initialize_of(1))).status == 503


async def test_requests_that_reach_no_process_leave_no_caller_behind():
    limits = {"isolated_per_token": 2}
    async with Bridge([restricted("few", "legacy")], host={"limits": limits}) as bridge:
        for number in range(6):
            async with modern(bridge, "few", roots={"x": number}) as client:
                assert error_of(await client.call("test_simple_text"))["code"] == -32602
                assert error_of(await client.request("no/such"))["code"] == -32601
                await client.retry("gw_pid", "mcpb1.x.1.y", {})
        async with modern(bridge, "few") as client:
            assert await pid_of(client) > 0


# ---- failures ----


@pytest.mark.requirement("B11")
@pytest.mark.parametrize("mode", ["exit_at_once", "silent"])
async def test_a_server_that_fails_at_initialize_leaves_no_session_and_one_crash(mode):
    server = hostile(mode, "bad", sessions="isolated", timeouts={"start": "2s"})
    async with Bridge([server]) as bridge, bridge.session("bad", opened=False) as session:
        response = await session.send(session.initialize_of(1))
        assert response.header("Mcp-Session-Id") is None
        assert code_of(answer_to(response, 1)) == "start_failed"
        row = await bridge.server("bad")
        assert (row["sessions"], row["crashes"], row["starts"]) == (0, 1, 1)
        assert row["last_death"] is not None


async def test_crashes_of_all_sessions_open_one_breaker_that_is_shown():
    server = isolated("weak", "legacy", breaker={"crashes": 2})
    async with Bridge([server]) as bridge:
        for _ in range(3):
            async with bridge.session("weak") as session:
                assert code_of(await session.call("gw_crash")) == "server_crashed"
        async with bridge.session("weak", opened=False) as session:
            response = await session.send(session.initialize_of(1))
            assert (response.status, code_of(answer_to(response, 1))) == (503, "breaker_open")
            row = await bridge.in_state("weak", "broken")
            assert (row["crashes"], row["breaker"]) == (3, "open")
            await bridge.command("weak", "reset")
            await session.initialize()
            assert (await bridge.server("weak"))["state"] == "ready"


# ---- operators, tokens, definitions ----


async def test_a_stop_ends_all_processes_until_the_start():
    async with Bridge([isolated("old", "legacy")]) as bridge:
        async with bridge.session("old") as session, modern(bridge, "old") as client:
            pids = [await pid_of(session), await pid_of(client)]
            row = await bridge.server("old")
            assert (row["state"], row["processes"], row["sessions"]) == ("ready", 2, 1)
            assert row["uptime"] is None
            assert await bridge.metric("mcp_bridge_sessions", server="old") == 1
            await bridge.command("old", "stop")
            await eventually(lambda: not any(alive(pid) for pid in pids))
            await bridge.in_state("old", "stopped")
            assert (await session.send(session.call_of("gw_pid", {}))).status == 404
            response = await client.send(client.call_of("gw_pid", {}, 1))
            assert (response.status, code_of(answer_to(response, 1))) == (
                503,
                "stopped_by_operator",
            )
            await bridge.command("old", "start")
            assert await pid_of(client) not in pids


async def test_an_initialize_that_is_under_way_at_a_stop_opens_no_session():
    async with Bridge([echo("slow", "--start", "1", sessions="isolated")]) as bridge:
        async with bridge.session("slow", opened=False) as session:
            opening = asyncio.create_task(session.send(session.initialize_of(1)))
            await eventually(bridge.processes)
            await bridge.command("slow", "stop")
            response = await opening
            assert response.header("Mcp-Session-Id") is None
            await eventually(lambda: not bridge.processes(), within=10)


@pytest.mark.requirement("F7")
async def test_a_revoked_token_ends_its_processes_and_no_others():
    async with Bridge([isolated("old", "legacy")]) as bridge:
        token = await bridge.more_token("old")
        async with (
            bridge.session("old") as mine,
            modern(bridge, "old") as client,
            bridge.session("old", token=token) as other,
        ):
            pids = [await pid_of(mine), await pid_of(client)]
            kept = await pid_of(other)
            bridge.forget_token("old")
            bridge.write(bridge.servers)
            await bridge.reload()
            await eventually(lambda: not any(alive(pid) for pid in pids))
            assert await pid_of(other) == kept


@pytest.mark.requirement("NV-12")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_policy_holds_for_isolated_servers_in_both_eras(era):
    async with Bridge([restricted("old", era)]) as bridge:
        clients = [modern(bridge, "old")]
        if era == "legacy":
            clients.append(bridge.session("old"))
        for made in clients:
            async with made as client:
                names = await client.tools()
                assert "gw_pid" in names
                assert not {"gw_crash", "test_simple_text"} & set(names)
                assert error_of(await client.call("gw_crash"))["code"] == -32602
                assert error_of(await client.request("no/such"))["code"] == -32601
                assert await pid_of(client) > 0


async def test_another_command_ends_the_sessions_and_another_setting_does_not():
    async with Bridge([isolated("old", "legacy")]) as bridge, bridge.session("old") as session:
        pid = await pid_of(session)
        bridge.write([isolated("old", "legacy", tools={"deny": ["gw_echo"]})])
        await bridge.reload()
        assert "error" in await session.call("gw_echo", {"value": 1})
        assert await pid_of(session) == pid
        bridge.write([isolated("old", "legacy", "--discover", "silent")])
        await bridge.reload()
        await eventually(lambda: not alive(pid))
        assert (await session.send(session.call_of("gw_pid", {}))).status == 404


async def test_a_server_can_become_isolated_and_shared_again():
    shared, own = conformance("old", "legacy"), isolated("old", "legacy")
    async with Bridge([shared]) as bridge:
        async with bridge.session("old") as session:
            pid = await pid_of(session)
            bridge.write([own])
            await bridge.reload()
            assert (await session.send(session.call_of("gw_pid", {}))).status == 404
        await eventually(lambda: not alive(pid))
        async with bridge.session("old") as one, bridge.session("old") as other:
            pids = [await pid_of(one), await pid_of(other)]
            assert pids[0] != pids[1]
            bridge.write([shared])
            await bridge.reload()
            await eventually(lambda: not any(alive(pid) for pid in pids))
        async with bridge.session("old") as one, bridge.session("old") as other:
            assert await pid_of(one) == await pid_of(other)


async def test_a_disabled_server_ends_its_processes():
    async with Bridge([isolated("old", "legacy")]) as bridge:
        async with bridge.session("old") as session, modern(bridge, "old", **FEATURES) as client:
            pids = [await pid_of(session), await pid_of(client)]
            bridge.write([isolated("old", "legacy", enabled=False)])
            await bridge.reload()
            await eventually(lambda: not any(alive(pid) for pid in pids))
            await bridge.in_state("old", "disabled")
