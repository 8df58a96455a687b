"""Editing the configuration of a running proxy touches what was edited only (NV-14)."""

import asyncio
import json

import pytest

from support import proc
from support.bridge import Bridge
from support.client import Modern, code_of, text_of
from support.fakes import echo
from support.neighbour import Neighbour
from support.waiting import eventually

GOOD = echo("good", tenant="acme", project="web")
KEPT = echo("kept")


async def healthy(bridge, wanted):
    return json.loads((await bridge.health()).body) == {"status": wanted}


async def served(bridge, instance):
    async with bridge.modern(instance) as client:
        response = await client.send(client.call_of("echo", {"text": "x"}))
        return response.status == 200


@pytest.mark.requirement("NV-14")
async def test_editing_the_file_under_load_leaves_every_other_server_alone():
    """Add, change, remove, break and mend, by the file alone, while good servers are called."""
    async with Bridge([GOOD, KEPT, echo("edited")]) as bridge:
        async with (
            Neighbour(bridge, "acme.web.good") as good,
            bridge.session("kept") as kept,
            bridge.session("edited") as edited,
        ):
            pids = {client: await client.text("pid") for client in (kept, edited)}
            stream = await kept.listen()

            # add
            bridge.write([GOOD, KEPT, echo("edited"), echo("fresh")])
            await eventually(lambda: served(bridge, "fresh"))

            # change what needs no new process
            tools = {"tools": {"deny": ["echo"]}}
            bridge.write([GOOD, KEPT, echo("edited", **tools), echo("fresh")])
            await eventually(lambda: denies(edited))
            assert "echo" not in await edited.tools()
            assert await edited.text("pid") == pids[edited]

            # change what needs one
            bridge.write([GOOD, KEPT, echo("edited", limits={"open_files": 512}), echo("fresh")])
            await eventually(lambda: has_another_pid(edited, pids[edited]))
            assert await edited.text("echo", text="same session") == "same session"

            # remove
            url, token = bridge.url("fresh"), bridge.token("fresh")
            pid = await bridge.server_pid("fresh")
            bridge.write([GOOD, KEPT, echo("edited", limits={"open_files": 512})])
            await eventually(lambda: refused(url, token))
            await eventually(lambda: not proc.alive(pid))

            # break, and mend
            before = bridge.servers
            for text in ("{ this is no JSON", '{"version": 1, "servers": [{"name": "Bad Name"}]}'):
                bridge.write_text(text)
                await eventually(lambda: healthy(bridge, "degraded"))
                assert await kept.text("pid") == pids[kept]
                assert await edited.text("echo", text="still") == "still"
                assert await bridge.metric("mcp_bridge_config_ok") == 0
            bridge.write(before)
            await eventually(lambda: healthy(bridge, "ok"))
            assert await bridge.metric("mcp_bridge_config_ok") == 1

            assert await kept.text("pid") == pids[kept]
            assert good.calls > 50
            async with bridge.modern("kept") as caller:
                await caller.text("list_changed", tool="x")
            await stream.until("notifications/tools/list_changed")
            await stream.close()
        assert await bridge.metric("mcp_bridge_crashes_total") == 0


async def denies(client):
    answer = await client.call("echo", {"text": "x"})
    return "error" in answer and code_of(answer) == "tool_denied"


async def has_another_pid(client, pid):
    return await client.text("pid") != pid


async def refused(url, token):
    async with Modern(url, token) as client:
        return (await client.send(client.call_of("echo", {}))).status == 401


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"version": 1, "servers": [', ["servers.json", "line 1"]),
        ('{"version": 1, "servers": [{"name": "x"}]}', ["servers.json", "$.servers[0].command"]),
        (
            '{"version": 1, "servers": [{"name": "x", "command": ["a"], "limits": {"memry": 1}}]}',
            ["servers.json", "$.servers[0].limits.memry", "memory"],
        ),
        ('{"version": 1, "servers": 5}', ["servers.json", "$.servers"]),
        ("", ["servers.json"]),
    ],
)
async def test_a_broken_file_is_named_to_operators_and_changes_nothing(text, words):
    async with Bridge([KEPT]) as bridge, bridge.session("kept") as session:
        pid = await session.text("pid")
        good = (bridge.config_dir / "servers.json").read_text(encoding="utf-8")
        bridge.write_text(text)
        assert json.loads((await bridge.reload()).body)["problems"]
        assert await healthy(bridge, "degraded")
        shown = (await bridge.health(operator=True)).body.decode()
        for word in words:
            assert word in shown, shown
            assert word in json.dumps((await bridge.status())["problems"])
            assert word not in (await bridge.health()).body.decode()
        assert await session.text("pid") == pid
        bridge.write_text(good)
        assert (await bridge.reload()).status == 200
        assert await healthy(bridge, "ok")


async def test_a_broken_host_toml_changes_nothing_either():
    async with Bridge([KEPT]) as bridge, bridge.session("kept") as session:
        pid = await session.text("pid")
        path = bridge.config_dir / "host.toml"
        good = path.read_text(encoding="utf-8")
        path.write_text(good + "[limits]\nsessions_per_serve = 1\n", encoding="utf-8")
        await eventually(lambda: healthy(bridge, "degraded"))
        assert "sessions_per_serve" in (await bridge.health(operator=True)).body.decode()
        assert await session.text("pid") == pid
        path.write_text(good, encoding="utf-8")
        await eventually(lambda: healthy(bridge, "ok"))


async def test_a_change_of_the_command_waits_for_the_call_in_flight():
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        pid = await session.text("pid")
        call = asyncio.create_task(session.send(session.call_of("wait", {"tag": "w"}, 1)))
        await eventually(lambda: waits(session))
        bridge.write([echo("files", "--tools", "added")])
        assert (await bridge.reload()).status == 200
        assert await session.text("release", tag="w") == "released"
        answer = (await call).messages[-1]
        assert text_of(answer) == "w"
        await eventually(lambda: has_another_pid(session, pid))
        assert "added" in await session.tools()
        assert await bridge.metric("mcp_bridge_crashes_total") == 0


async def waits(session):
    return json.loads(await session.text("state"))["waiting"] == ["w"]


async def test_a_server_that_is_removed_and_added_again_has_no_old_session():
    async with Bridge([KEPT, echo("files")]) as bridge, bridge.session("files") as session:
        stream = await session.listen()
        bridge.write([KEPT])
        await bridge.reload()
        assert await stream.event() is None
        await stream.close()
        bridge.write([KEPT, echo("files")])
        await bridge.reload()
        response = await session.send(session.call_of("pid", {}))
        assert response.status == 404
        session.session = None
        await session.initialize()


async def test_disabling_a_server_stops_it_and_says_so():
    async with Bridge([KEPT, echo("files")]) as bridge, bridge.session("files") as session:
        await session.text("pid")
        bridge.write([KEPT, echo("files", enabled=False)])
        await bridge.reload()
        async with bridge.modern("files") as client:
            response = await client.send(client.call_of("pid", {}))
            assert response.status == 503
            assert response.messages[0]["error"]["data"]["code"] == "disabled"
        await eventually(lambda: not bridge.processes())


async def test_a_token_that_is_taken_from_the_file_stops_working_and_the_new_one_works():
    async with Bridge([KEPT]) as bridge, bridge.session("kept") as session:
        await session.text("pid")
        old = bridge._tokens.pop("kept")
        bridge.write([KEPT])
        await eventually(lambda: refused(bridge.url("kept"), old))
        bridge._tokens["old"] = old
        assert (await session.send(session.call_of("pid", {}))).status == 401
        assert await served(bridge, "kept")


async def test_files_in_servers_d_count_and_the_same_server_twice_is_an_error():
    async with Bridge([KEPT]) as bridge:
        more = bridge.config_dir / "servers.d"
        more.mkdir(mode=0o755)
        text = (bridge.config_dir / "servers.json").read_text(encoding="utf-8")
        (more / "extra.json").write_text(text.replace('"kept"', '"extra"'), encoding="utf-8")

        async def both():
            return {row["instance"] for row in (await bridge.status())["servers"]} == {
                "kept",
                "extra",
            }

        await eventually(both)
        (more / "again.json").write_text(text, encoding="utf-8")
        await eventually(lambda: healthy(bridge, "degraded"))
        shown = (await bridge.health(operator=True)).body.decode()
        assert "again.json" in shown
        assert "servers.json" in shown
        (more / "again.json").unlink()
        await eventually(lambda: healthy(bridge, "ok"))


async def test_many_quick_edits_end_with_the_last_one():
    async with Bridge([KEPT]) as bridge, bridge.session("kept") as session:
        pid = await session.text("pid")
        for number in range(30):
            bridge.write([KEPT, echo(f"s{number}")])
            if number % 5 == 0:
                await bridge.reload()

        async def last():
            rows = (await bridge.status())["servers"]
            return {row["instance"] for row in rows} == {"kept", "s29"}

        await eventually(last)
        assert await session.text("pid") == pid


async def test_a_restart_of_the_proxy_serves_the_same_configuration():
    async with Bridge([KEPT]) as bridge:
        async with bridge.session("kept") as session:
            await session.text("pid")
        assert await bridge.stop() == 0
        assert not bridge.processes()
        assert not (bridge.runtime_dir / "endpoint.json").exists()
        await bridge.start()
        assert await served(bridge, "kept")


async def test_a_configuration_that_is_deleted_whole_stays_in_force_and_is_told():
    async with Bridge([echo("files")]) as bridge:
        assert await served(bridge, "files")
        (bridge.config_dir / "servers.json").unlink()
        await eventually(lambda: healthy(bridge, "degraded"))
        assert await served(bridge, "files")
        assert "what it said stays in force" in bridge.log()
        bridge.write([])
        await eventually(lambda: healthy(bridge, "ok"))
        assert "files: removed from the configuration" in bridge.log()


async def test_a_new_token_does_not_start_a_failed_install_again():
    missing = {"name": "files", "command": ["uvx", "no-such-thing@1.0.0"]}
    nowhere = "http://127.0.0.1:1/simple"
    env = {"UV_DEFAULT_INDEX": nowhere, "PIP_INDEX_URL": nowhere, "UV_HTTP_RETRIES": "0"}
    async with Bridge([missing, GOOD], env={**env, "PIP_RETRIES": "0"}) as bridge:
        await bridge.in_state("files", "install_failed", within=60)
        bridge.write(bridge.servers, defaults={"warm": False})
        await eventually(lambda: loaded(bridge, 2))
        assert bridge.log().count("installing no-such-thing==1.0.0 (pypi) …\n") == 1
        await bridge.reload()
        await eventually(lambda: bridge.log().count("not installed: no-such-thing") == 2, within=60)


async def loaded(bridge, times):
    return (await bridge.status())["loaded"] >= times


async def test_a_server_that_is_enabled_again_is_served_whatever_stopped_it():
    async with Bridge([echo("files")]) as bridge:
        async with bridge.modern("files") as client:
            await bridge.command("files", "stop")
            await bridge.in_state("files", "stopped")
            bridge.write([echo("files", enabled=False)])
            await bridge.reload()
            await bridge.in_state("files", "disabled")

            bridge.write([echo("files")])
            await bridge.reload()

            assert await client.text("echo", text="again") == "again"
