"""The commands against a real proxy with a real server."""

import asyncio
import json
import sys
from urllib.parse import urlsplit

import pytest

from autobot_mcp_bridge.cli import in_force
from autobot_mcp_bridge.cli.main import main
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.names import parse_instance
from support.bridge import Bridge
from support.client import Modern
from support.fakes import echo
from support.waiting import PATIENCE, eventually


@pytest.fixture
def command(capsys, monkeypatch):
    """Run a command beside the event loop: its status, stdout and stderr."""
    monkeypatch.delenv("MCP_BRIDGE_TOKEN", raising=False)

    async def command(bridge, *words):
        status = await asyncio.to_thread(main, [*bridge.options, *words])
        out, err = capsys.readouterr()
        return status, out, err

    return command


async def test_from_adding_a_server_to_calling_it_and_purging_it(command):
    async with Bridge([echo("first")]) as bridge:
        words = [w.replace("@SERVERS@", f"{bridge.root}/servers") for w in echo()["command"]]

        assert (await command(bridge, "add", "acme.files", "--", *words))[0] == 0
        assert (await command(bridge, "reload"))[0] == 0
        status, out, err = await command(bridge, "call", "acme.files", "echo", '{"text": "hi"}')
        assert (status, err) == (0, "")
        assert "hi" in out

        rows = json.loads((await command(bridge, "list", "--json"))[1])
        states = {row["name"]: row["state"] for row in rows["servers"]}
        assert rows["running"] is True
        assert states == {"first": "sleeping", "acme.files": "ready"}

        places = Places(bridge.config_dir, bridge.state_dir, bridge.runtime_dir)
        directory = places.server_dir(parse_instance("acme.files"))
        assert directory.is_dir()
        assert (await command(bridge, "remove", "acme.files", "--purge"))[0] == 0
        assert not directory.exists()
        assert (await command(bridge, "call", "acme.files", "echo"))[0] == 66


async def test_calls_end_with_the_status_that_says_why(command):
    async with Bridge([echo("files")]) as bridge:
        token = bridge.root / "token"
        token.write_text(bridge.token("files"), encoding="ascii")
        words = ("call", "files", "no-such-tool", "--token-file", str(token))

        assert (await command(bridge, *words))[0] == 1
        token.write_text("mcpb_wrong", encoding="ascii")
        assert (await command(bridge, *words))[0] == 77
        assert (await command(bridge, "call", "files", "echo"))[0] == 66

        token.write_text(bridge.token("files"), encoding="ascii")
        assert (await command(bridge, "stop", "files"))[0] == 0
        status, _, err = await command(bridge, "call", "files", "echo", "--token-file", str(token))
        assert status == 69
        assert "stopped_by_operator" in err

        assert (await command(bridge, "start", "files"))[0] == 0

        async def state():
            rows = json.loads((await command(bridge, "list", "--json"))[1])["servers"]
            return rows[0]["state"] == "ready"

        await eventually(state, within=30, what="the server is ready")
        assert (await command(bridge, "reset", "no-such"))[0] == 66


async def test_a_new_token_counts_and_a_revoked_one_does_not_once_the_command_is_over(
    command, tmp_path
):
    token = tmp_path / "token"
    async with Bridge([echo("files")]) as bridge:
        words = ("call", "files", "echo", '{"text": "x"}', "--token-file", str(token))
        for new in (("new",), ("rotate",)):
            status, out, _ = await command(bridge, "token", *new, "files")
            assert status == 0
            token.write_text(out, encoding="ascii")
            assert (await command(bridge, *words))[0] == 0
        assert (await command(bridge, "token", "revoke", "files", "--all"))[0] == 0
        assert (await command(bridge, *words))[0] == 77


async def test_a_reload_of_a_broken_file_tells_its_path_and_exits_65(command):
    async with Bridge([echo("files")]) as bridge:
        bridge.write_text("{")

        status, _, err = await command(bridge, "reload")

        assert status == 65
        assert "line 1, column 2" in err
        assert "last good" in err


async def test_a_reload_tells_that_the_hosts_settings_count_after_a_restart(command):
    async with Bridge([echo("files")]) as bridge:
        assert "restarted" not in (await command(bridge, "reload"))[2]
        path = bridge.config_dir / "host.toml"
        before = path.read_text(encoding="utf-8")
        path.write_text(before + "[limits]\nconnections = 9\n", encoding="utf-8")

        status, _, err = await command(bridge, "reload")

        assert status == 0
        assert "host.toml" in err
        path.write_text(before, encoding="utf-8")
        assert "restarted" not in (await command(bridge, "reload"))[2]


@pytest.mark.parametrize("why", ["is running already", "cannot listen", "another process writes"])
async def test_a_second_proxy_is_refused_and_the_first_goes_on_as_it_was(command, why, tmp_path):
    async with Bridge([echo("files")]) as bridge:
        options = [*bridge.options]
        if why != "is running already":
            options.append(f"--runtime-dir={tmp_path}")
            port = urlsplit(bridge.base).port if why == "cannot listen" else 0
            text = f"[listen]\nport = {port}\n[operator]\nport = 0\n"
            text += "[audit]\nfile = false\n" if why == "cannot listen" else ""
            (bridge.config_dir / "host.toml").write_text(text, encoding="utf-8")
        second = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "autobot_mcp_bridge.cli.main", "serve", *options),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(30 * PATIENCE):
            _, err = await second.communicate()
        assert second.returncode == 69
        assert why in err.decode()

        async with bridge.modern("files") as client:
            await client.text("pid")
        rows = json.loads((await command(bridge, "list", "--json"))[1])
        assert [row["state"] for row in rows["servers"]] == ["ready"]
        assert (bridge.runtime_dir / "endpoint.json").exists()


async def test_status_tells_everything_about_one_server_and_what_to_type_next(command):
    async with Bridge([echo("files"), echo("other")]) as bridge:
        async with bridge.session("files") as session:
            pid = await session.text("pid")
            status, out, _ = await command(bridge, "status", "files")
            assert status == 0
            shown = dict(line.split("  ", 1) for line in out.splitlines())
            shown = {name.strip(): text.strip() for name, text in shown.items()}
            assert shown["state"] == "ready"
            assert shown["pid"] == pid
            assert shown["memory"].endswith("M")
            assert shown["limits"] == "memory 512M, open files 1024"
            assert shown["sessions"] == "1, shared"
            assert shown["sandbox"].startswith("none")
            assert shown["next"] == "mcp-bridge logs files"
            await session.call("crash", {"status": 7})
            told = (await command(bridge, "status", "files"))[1]
            assert "because   it exited" in told
            assert "mcp-bridge doctor files; mcp-bridge logs files" in told
            assert "it exited" in (await command(bridge, "list"))[1]
            await session.text("pid")
            assert "last end  it exited" in (await command(bridge, "status", "files"))[1]
            assert "it exited" not in (await command(bridge, "list"))[1]
        found = json.loads((await command(bridge, "status", "files", "--json"))[1])
        assert (found["crashes"], found["last_death"]["status"]) == (1, 7)
        assert found["sandbox"]["limits"]["tasks"] == 128
        assert (await command(bridge, "stop", "files"))[0] == 0
        await bridge.in_state("files", "stopped")
        assert "next      mcp-bridge start files" in (await command(bridge, "status", "files"))[1]
        for words in (("call", "unknown", "echo"), ("token", "list", "unknown")):
            status, _, err = await command(bridge, *words)
            assert (status, "there is no server unknown" in err) == (66, True)
        status, _, err = await command(bridge, "status", "unknown")
        assert (status, "there are files, other" in err) == (66, True)
        servers = [echo("files"), echo("other"), echo("new"), echo("bad", limits={"tasks": 0})]
        bridge.write(servers)
        status, _, err = await command(bridge, "status", "new")
        assert (status, "new is in the files and not in force" in err) == (66, True)


async def test_top_shows_the_running_servers_alone(command):
    async with Bridge([echo("files"), echo("asleep")]) as bridge:
        async with bridge.session("files") as session:
            await session.text("pid")
            rows = json.loads((await command(bridge, "top", "--json", "--every", "200ms"))[1])
            assert [row["instance"] for row in rows] == ["files"]
            assert rows[0]["memory"] > 1 << 20
            out = (await command(bridge, "top", "--once", "--every", "200ms"))[1]
            assert [line.split()[0] for line in out.splitlines()] == ["NAME", "files"]


async def test_logs_without_systemd_say_where_they_are(command):
    async with Bridge([echo("files")]) as bridge:
        status, _, err = await command(bridge, "logs", "files")
        assert status == 69
        assert "its own stderr" in err


async def test_what_add_disable_and_enable_have_returned_from_is_in_force(command):
    async with Bridge([echo("first")]) as bridge:
        words = [w.replace("@SERVERS@", f"{bridge.root}/servers") for w in echo()["command"]]
        status, _, err = await command(bridge, "add", "files", "--memory", "256M", "--", *words)
        assert (status, "not in force" in err) == (0, False)
        assert await outcome(command, bridge) == (0, "hi")

        assert (await command(bridge, "disable", "files"))[0] == 0
        status, _, err = await command(bridge, "call", "files", "echo", '{"text": "hi"}')
        assert status != 0 and "disabled" in err
        assert (await command(bridge, "enable", "files"))[0] == 0
        assert await outcome(command, bridge) == (0, "hi")

        await command(bridge, "add", "later", "--disabled", "--", *words)
        rows = json.loads((await command(bridge, "list", "--json"))[1])["servers"]
        assert {row["name"]: row["state"] for row in rows}["later"] == "disabled"


async def test_what_import_has_returned_from_is_in_force(command, tmp_path):
    async with Bridge([echo("first")]) as bridge:
        words = [w.replace("@SERVERS@", f"{bridge.root}/servers") for w in echo()["command"]]
        files = {"command": words[0], "args": words[1:]}
        file = tmp_path / "mcp.json"
        file.write_text(
            json.dumps({"mcpServers": {"files": files, "off": {**files, "disabled": True}}})
        )

        status, _, err = await command(bridge, "import", str(file))

        assert (status, "not in force" in err) == (0, False)
        assert await outcome(command, bridge) == (0, "hi")
        rows = json.loads((await command(bridge, "list", "--json"))[1])["servers"]
        assert {row["name"]: row["state"] for row in rows}["off"] == "disabled"


async def outcome(command, bridge):
    status, out, _ = await command(bridge, "call", "files", "echo", '{"text": "hi"}')
    return status, out.strip()


async def test_tokens_that_were_rotated_or_revoked_count_or_not_from_then_on(command):
    async with Bridge([echo("files")]) as bridge:
        first = (await command(bridge, "token", "new", "files"))[1].strip()
        assert await answers(bridge, first)

        words = ("token", "rotate", "files", "--overlap", "0s")
        second = (await command(bridge, *words))[1].strip()
        assert (await answers(bridge, first), await answers(bridge, second)) == (False, True)

        await command(bridge, "token", "revoke", "files", "--all")
        assert not await answers(bridge, second)


async def answers(bridge, token):
    async with Modern(bridge.url("files"), token) as client:
        response = await client.send(client.call_of("pid", {}, 1))
        assert response.status in (200, 401)
        return response.status == 200


async def test_what_is_not_in_force_in_time_is_said(command, monkeypatch):
    monkeypatch.setattr(in_force, "WITHIN", 0.0)
    monkeypatch.setattr(in_force, "is_disabled", lambda _row: False)
    async with Bridge([echo("files")]) as bridge:
        status, _, err = await command(bridge, "disable", "files")
    assert (status, "not in force yet" in err) == (0, True)
