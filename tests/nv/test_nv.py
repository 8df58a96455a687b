"""NV-01 to NV-14, each against the real proxy.

Every assertion's message begins with the id: test_removal.py takes the behaviour away, runs the
same test and expects it to fail in exactly that assertion.
"""

import asyncio
import hashlib
import json
import os
import sys
from pathlib import Path

import pytest

from support import proc
from support.bridge import Bridge, new_token
from support.client import answer_to, error_of
from support.fakes import echo, entry, hostile
from support.waiting import PATIENCE, WITHIN, eventually
from support.wire import exchange

requirement = pytest.mark.requirement
ELSEWHERE = {"tenant": "acme", "project": "web"}


async def reached(bridge, path, token):
    """The status of a modern call to this very path."""
    async with bridge.modern(bridge.servers[0]["name"]) as client:
        client.token = token
        return (await client.send(client.call_of("pid", {}), target=path)).status


def of_process(pid, name):
    return Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8")


@requirement("NV-01")
async def test_each_server_is_one_child_process_however_many_sessions_it_has():
    async with Bridge([echo("one"), echo("two")]) as bridge:
        seen = {}
        for name in ("one", "two"):
            async with bridge.session(name) as first, bridge.session(name) as second:
                seen[name] = {await client.text("pid") for client in (first, second, first)}

        assert all(len(pids) == 1 for pids in seen.values()), "NV-01: a server has two processes"
        assert seen["one"] != seen["two"], "NV-01: two servers share a process"
        running = {int(pid) for pids in seen.values() for pid in pids}
        found = set(bridge.processes())
        assert found == running, f"NV-01: {found} run, {running} answer"


@requirement("NV-02")
async def test_a_command_reaches_its_server_word_by_word():
    words = "$HOME *,`id`"
    async with Bridge([echo("files", "--tools", words)]) as bridge:
        async with bridge.modern("files") as client:
            pid = int(await client.text("pid"))
            tools = await client.tools()
        argv = of_process(pid, "cmdline").split("\0")

        assert words in argv, f"NV-02: a shell has read the words: {argv}"
        assert set(words.split(",")) <= set(tools), f"NV-02: other words arrived: {tools}"


@requirement("NV-03")
async def test_nothing_of_the_hosts_environment_reaches_a_server():
    secret = new_token()
    server = echo("files", env={"OWN": "mine"})
    async with Bridge([server], env={"HOST_SECRET": secret}) as bridge:
        async with bridge.modern("files") as client:
            found = json.loads(await client.text("env"))

        assert proc.environment(bridge.pid)["HOST_SECRET"] == secret
        assert secret not in found.values(), "NV-03: a variable of the host is inherited"
        assert found["OWN"] == "mine"


@requirement("NV-04")
async def test_a_server_works_in_a_private_directory_of_its_own():
    async with Bridge([echo("files", **ELSEWHERE)]) as bridge:
        async with bridge.modern("acme.web.files") as client:
            found = json.loads(await client.text("cwd"))

        wanted = {"cwd": str(bridge.state_dir / "acme/web/files"), "mode": 0o700}
        assert found == wanted, f"NV-04: it works in {found['cwd']} with mode {found['mode']:o}"


@requirement("NV-05")
async def test_open_files_and_cores_of_a_server_are_limited():
    async with Bridge([echo("files", limits={"open_files": 321})]) as bridge:
        async with bridge.modern("files") as client:
            pid = int(await client.text("pid"))
        limits = of_process(pid, "limits").splitlines()
        rows = {line[:26].strip(): line[26:].split()[:2] for line in limits}

        assert rows["Max open files"] == ["321", "321"], "NV-05: open files are not limited"
        assert rows["Max core file size"] == ["0", "0"], "NV-05: cores are not limited"


@requirement("NV-05")
async def test_a_server_that_takes_more_memory_than_it_may_is_ended():
    async with Bridge([entry("hungry", "hungry", limits={"memory": "64M"})]) as bridge:
        async with bridge.modern("hungry") as client:
            held = await client.text("eat", mib=4)
            # It answers no sooner than it is ended: the watcher looks from time to time.
            greedy = asyncio.create_task(client.call("eat", {"mib": 160, "answer": False}))
            ended, _ = await asyncio.wait({greedy}, timeout=WITHIN * PATIENCE)
            greedy.cancel()

        assert held == "4"
        assert ended, "NV-05: memory is not limited"
        cause = error_of(greedy.result())["data"]["death"]["cause"]
        assert cause == "memory", f"NV-05: the cause is {cause}"


@requirement("NV-06")
async def test_a_server_without_calls_is_stopped_and_wakes_on_the_next():
    async with Bridge([echo("files", timeouts={"idle": "300ms"})]) as bridge:
        async with bridge.session("files") as session:
            first = int(await session.text("pid"))
            try:
                await eventually(lambda: not proc.alive(first))
            except AssertionError:
                raise AssertionError("NV-06: an idle server runs on") from None

            assert await bridge.metric("mcp_bridge_crashes_total", server="files") == 0
            assert int(await session.text("pid")) != first


@requirement("NV-07")
async def test_a_crashed_server_is_started_again_for_the_next_call():
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        first = await session.text("pid")
        await session.call("kill")
        answer = await session.call("pid")

        assert "result" in answer, f"NV-07: it is not started again: {answer}"
        assert answer["result"]["content"][0]["text"] != first


@requirement("NV-07")
async def test_the_sixth_crash_within_a_minute_keeps_a_server_down():
    async with Bridge([hostile("exit_at_once", "dying")]) as bridge:
        async with bridge.modern("dying") as client:
            words = [
                error_of(await client.call("echo", {"text": "x"}))["data"]["code"] for _ in range(7)
            ]
            response = await client.send(client.call_of("echo", {}))

        assert words[:6] == ["start_failed"] * 6, words
        assert words[6] == "breaker_open", f"NV-07: after six crashes a call gets {words[6]}"
        assert response.status == 503
        assert 0 < float(response.header("Retry-After")) <= 60
        await bridge.in_state("dying", "broken")


@requirement("NV-08")
async def test_http_is_served_by_aiohttp():
    # The parser of aiohttp is a library of its own; a proxy that maps it has loaded it.
    try:
        async with Bridge([echo("files")]) as bridge:
            maps = of_process(bridge.pid, "maps")
            status = (await bridge.health()).status
    except AssertionError as fault:
        raise AssertionError("NV-08: without aiohttp nothing is served") from fault

    assert status == 200
    assert "/aiohttp/" in maps, "NV-08: aiohttp's parser is not loaded"


@requirement("NV-09")
async def test_a_servers_url_names_tenant_project_and_server():
    server = echo("files", **ELSEWHERE)
    shared = echo("shared", tenant="acme")
    async with Bridge([echo("plain"), server, shared]) as bridge:
        statuses = {
            path: await reached(bridge, path, bridge.token(instance))
            for instance, path in (
                ("acme.web.files", "/t/acme/p/web/s/files/mcp"),
                ("acme.shared", "/t/acme/s/shared/mcp"),
                ("plain", "/t/default/s/plain/mcp"),
            )
        }

        assert set(statuses.values()) == {200}, f"NV-09: {statuses}"


@requirement("NV-10")
async def test_a_token_is_stored_as_its_sha256_only():
    async with Bridge([echo("files")]) as bridge:
        code, printed = await command_line(bridge, "token", "new", "files")
        token = next(word for word in printed.split() if word.startswith("mcpb_"))
        stored = b"\n".join(
            path.read_bytes()
            for root in (bridge.config_dir, bridge.state_dir / "tokens.d")
            for path in sorted(root.rglob("*"))
            if path.is_file()
        )

        assert code == 0, printed
        assert len(token) == len("mcpb_") + 43
        assert hashlib.sha256(token.encode()).hexdigest().encode() in stored
        assert token.encode() not in stored, "NV-10: the token itself is stored"


@requirement("NV-10")
async def test_a_server_takes_its_own_token_and_no_other():
    async with Bridge([echo("files"), echo("notes")]) as bridge:
        path = bridge.path("files")
        own = await reached(bridge, path, bridge.token("files"))
        other = await reached(bridge, path, bridge.token("notes"))
        made_up = await reached(bridge, path, new_token())

        assert own == 200
        assert (other, made_up) == (401, 401), "NV-10: a token that is not the server's counts"


async def command_line(bridge, *words):
    """Run mcp-bridge in the bridge's places; its exit status and what it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "autobot_mcp_bridge.cli.main",
        *bridge.options,
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "HOME": str(bridge.root)},
    )
    async with asyncio.timeout(20):
        out, _ = await process.communicate()
    return process.returncode, out.decode()


@requirement("NV-11")
async def test_a_foreign_token_learns_nothing_about_which_servers_exist():
    async with Bridge([echo("files"), echo("other", **ELSEWHERE)]) as bridge:
        answers = {}
        for path in ("/t/default/s/files/mcp", "/t/default/s/nothing/mcp", "/t/no/p/no/s/no/mcp"):
            async with bridge.modern("files") as client:
                client.token = bridge.token("acme.web.other")
                response = await client.send(client.call_of("pid", {}), target=path)
                answers[path] = response.comparable
        first, *others = answers.values()

        assert first[0] == 401
        assert all(other == first for other in others), f"NV-11: the answers differ: {answers}"


@requirement("NV-12")
@pytest.mark.parametrize("era", ["session", "modern"])
async def test_only_allowed_tools_are_listed(era):
    server = echo("files", tools={"allow": ["echo", "p*"], "deny": ["progress"]})
    async with Bridge([server]) as bridge, getattr(bridge, era)("files") as client:
        tools = set(await client.tools())

        assert tools == {"echo", "pid"}, f"NV-12: listed are {tools}"


@requirement("NV-12")
@pytest.mark.parametrize("era", ["session", "modern"])
async def test_only_allowed_tools_can_be_called(era):
    server = echo("files", tools={"allow": ["echo", "p*"], "deny": ["progress"]})
    async with Bridge([server]) as bridge, getattr(bridge, era)("files") as client:
        allowed = await client.call("pid")
        refused = {}
        for name in ("counter", "progress", "ECHO", " echo"):
            message = client.call_of(name, {})
            headers = {"Mcp-Name": "echo"} if era == "session" else {}
            answer = answer_to(await client.send(message, headers=headers), message["id"])
            refused[name] = answer.get("error", {}).get("data", {}).get("code")

        assert "result" in allowed
        assert set(refused.values()) == {"tool_denied"}, f"NV-12: called were {refused}"


@requirement("NV-13")
async def test_health_and_metrics_are_served():
    async with Bridge([echo("files")]) as bridge:
        async with bridge.modern("files") as client:
            await client.text("pid")
        health = await bridge.health()
        metrics = await exchange(f"{bridge.operator}/metrics")

        assert health.status == 200, "NV-13: there is no /healthz"
        assert json.loads(health.body) == {"status": "ok"}
        assert metrics.status == 200, "NV-13: there is no /metrics"
        kind = metrics.header("Content-Type")
        assert kind.startswith("text/plain"), f"NV-13: {kind}"
        calls = await bridge.metric("mcp_bridge_calls_total", server="files", outcome="ok")
        assert calls == 1, f"NV-13: {calls} calls are counted"


@requirement("NV-14")
async def test_a_changed_configuration_is_in_force_without_a_restart():
    async with Bridge([echo("files")]) as bridge:
        async with bridge.modern("files") as files:
            before = await files.text("pid")
            bridge.write([echo("files"), echo("added")])

            async def added():
                token = bridge.token("added")
                return await reached(bridge, bridge.path("added"), token) == 200

            try:
                await eventually(added)
            except AssertionError:
                raise AssertionError("NV-14: the changed file is not read") from None
            assert await files.text("pid") == before
