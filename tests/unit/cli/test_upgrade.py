"""`outdated` and `upgrade` against a real proxy whose servers come from a registry of ours."""

import asyncio
import json
import os

import pytest

from autobot_mcp_bridge.cli.main import main
from support.bridge import Bridge
from support.made import PY_SERVER, uvx
from support.registry import serving
from support.waiting import eventually

OPEN = ("--from", "made-server<2", "made-server")
INSTALL = 60.0


@pytest.fixture
def registry(need):
    need("uv")
    with serving() as found:
        found.add_pypi("made-server", ["1.0.0"], PY_SERVER)
        yield found


@pytest.fixture
def environ(registry, monkeypatch):
    """What proxy and commands have in common."""
    variables = {**registry.environ, "PIP_CONFIG_FILE": os.devnull}
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    return variables


@pytest.fixture
def command(capsys):
    """Run a command beside the event loop: its status, stdout and stderr."""

    async def command(bridge, *words):
        status = await asyncio.to_thread(main, [*bridge.options, *words])
        out, err = capsys.readouterr()
        return status, out, err

    return command


async def installed(bridge, *names):
    for name in names:
        await bridge.in_state(name, "sleeping", "ready", within=INSTALL)


async def version_of(client, wanted):
    async def is_so():
        return await client.text("version", within=INSTALL) == wanted

    await eventually(is_so, within=INSTALL, what=f"version {wanted} answers")


async def test_a_session_goes_from_version_to_version_and_back(registry, environ, command):
    servers = [uvx("one", *OPEN), uvx("two", *OPEN)]
    async with Bridge(servers, env=environ) as bridge:
        await installed(bridge, "one", "two")
        async with bridge.session("one") as client, bridge.session("two") as other:
            await version_of(client, "1.0.0")
            await version_of(other, "1.0.0")
            status, out, _ = await command(bridge, "outdated")
            assert status == 0
            assert "up to date" in out
            registry.add_pypi("made-server", ["1.0.0", "1.1.0", "2.0.0"], PY_SERVER)

            status, out, _ = await command(bridge, "outdated", "one")
            assert status == 1
            head, row = (line.split(maxsplit=5) for line in out.splitlines())
            assert head[2:] == ["INSTALLED", "ALLOWED", "NEWEST", "STATUS"]
            assert row[2:] == ["1.0.0", "1.1.0", "2.0.0", "mcp-bridge upgrade one"]
            status, out, _ = await command(bridge, "upgrade", "one", "--check")
            assert (status, out) == (0, "made-server<2  1.0.0 -> 1.1.0\n")
            assert await client.text("version") == "1.0.0"

            status, out, err = await command(bridge, "upgrade", "one")
            assert status == 0, err
            assert out.startswith("made-server<2  1.0.0 -> 1.1.0, sha256:")
            assert "changed with it: two" in err
            await version_of(client, "1.1.0")
            await version_of(other, "1.1.0")

            registry.hits.clear()
            assert (await command(bridge, "upgrade", "one", "--rollback"))[0] == 0
            assert registry.hits == []
            await version_of(client, "1.0.0")
            await version_of(other, "1.0.0")


async def test_a_failed_upgrade_says_why_and_the_old_version_goes_on(registry, environ, command):
    async with Bridge([uvx("one", *OPEN)], env=environ) as bridge:
        await installed(bridge, "one")
        async with bridge.session("one") as client:
            await version_of(client, "1.0.0")
            pid = await bridge.server_pid("one")
            registry.add_pypi("made-server", ["1.0.0", "1.1.0"], PY_SERVER)
            registry.spoil("1.1.0")

            status, _, err = await command(bridge, "upgrade", "one")

            assert status == 1
            assert "version 1.0.0 stays in force" in err
            assert await client.text("version") == "1.0.0"
            assert await bridge.server_pid("one") == pid


async def test_the_version_before_the_last_two_is_deleted(registry, environ, command):
    async with Bridge([uvx("one", *OPEN)], env=environ) as bridge:
        await installed(bridge, "one")
        for version in ("1.1.0", "1.2.0"):
            registry.add_pypi("made-server", ["1.0.0", version], PY_SERVER)
            assert (await command(bridge, "upgrade", "one"))[0] == 0

        left = sorted(path.name for path in (bridge.state_dir / "packages/pypi").iterdir())
        assert left == ["made-server@1.1.0", "made-server@1.2.0"]


async def test_what_cannot_be_upgraded_says_what_to_do(registry, environ, command):
    plain = {"name": "plain", "command": ["cat"]}
    servers = [uvx("pinned", "made-server@1.0.0"), uvx("open", "made-server"), plain]
    async with Bridge(servers, env=environ) as bridge:
        await installed(bridge, "pinned", "open")
        registry.add_pypi("made-server", ["1.0.0", "1.1.0"], PY_SERVER)

        status, _, err = await command(bridge, "upgrade", "pinned")
        assert status == 65
        assert f"{bridge.config_dir}/servers.json $.servers[0].command" in err
        assert "the newest is 1.1.0" in err
        status, _, err = await command(bridge, "upgrade", "open", "--rollback")
        assert status == 1
        assert "has not been upgraded" in err
        status, _, err = await command(bridge, "upgrade", "plain")
        assert status == 64
        assert "names no package" in err
        status, _, err = await command(bridge, "upgrade", "nobody")
        assert status == 66
        assert "there is no server nobody; there are open, pinned, plain" in err


async def test_a_registry_that_cannot_be_reached_is_told_in_its_rows(registry, environ, command):
    servers = [uvx("here", "made-server"), uvx("lost", "no-such-thing==1.*")]
    async with Bridge(servers, env=environ) as bridge:
        await installed(bridge, "here")

        status, out, _ = await command(bridge, "outdated", "--json")

        rows = {row["name"]: row for row in json.loads(out)["servers"]}
        assert status == 69
        assert rows["here"]["newest"] == "1.0.0"
        assert (rows["lost"]["installed"], rows["lost"]["newest"]) == (None, None)
        assert "no-such-thing" in rows["lost"]["why"]
