"""Real clients initialize (or discover), list and call through the real proxy."""

import dataclasses
from pathlib import Path

import pytest

from clients import drivers, setup
from support.bridge import Bridge
from support.cutting import CuttingRelay
from support.fakes import echo

pytestmark = pytest.mark.clients

LATEST = "2025-11-25"
MODERN = "2026-07-28"
WORDS = {"message": "across"}
EVERYTHING = "node_modules/@modelcontextprotocol/server-everything/dist/index.js"


@pytest.fixture
def everything(need):
    """The reference server of the TypeScript SDK, as anybody would configure it."""
    need("clients")
    command = [str(setup.node()), str(setup.home() / EVERYTHING), "stdio"]
    return {"name": "everything", "command": command}


def target(bridge, name, tool="echo", arguments=WORDS):
    return drivers.Target(bridge.url(name), bridge.token(name), tool, arguments)


def slow(bridge):
    """A call that reports its progress in two steps."""
    arguments = {"duration": 1, "steps": 2}
    return target(bridge, "everything", "trigger-long-running-operation", arguments)


@pytest.mark.parametrize(
    ("mode", "version"), [("auto", MODERN), ("legacy", LATEST), (MODERN, MODERN)]
)
async def test_the_python_client_lists_and_calls_a_python_server(mode, version, tmp_path: Path):
    async with Bridge([echo("files")]) as bridge:
        seen = await drivers.python_mcp(
            target(bridge, "files", arguments={"text": "across"}), mode, tmp_path
        )

    assert seen.version == version
    assert "echo" in seen.tools
    assert "across" in seen.text


@pytest.mark.parametrize(
    ("mode", "version"), [("auto", MODERN), ("legacy", LATEST), (MODERN, MODERN)]
)
async def test_the_python_client_lists_and_calls_the_reference_server(
    mode, version, everything, tmp_path
):
    async with Bridge([everything]) as bridge:
        seen = await drivers.python_mcp(target(bridge, "everything"), mode, tmp_path)

    assert seen.version == version
    assert "echo" in seen.tools
    assert seen.text == "Echo: across"


async def test_progress_reaches_the_python_client_that_asked_for_it(everything, tmp_path):
    async with Bridge([everything]) as bridge:
        seen = await drivers.python_mcp(slow(bridge), "legacy", tmp_path)

    assert "completed" in seen.text
    assert seen.progress == 2


async def test_the_first_typescript_sdk_initializes_lists_and_calls_with_progress(
    everything, tmp_path
):
    async with Bridge([everything]) as bridge:
        seen = await drivers.node_script("ts_v1.mjs", slow(bridge), "handshake", tmp_path)

    assert seen.version == LATEST
    assert "echo" in seen.tools
    assert "completed" in seen.text
    assert seen.progress == 2


@pytest.mark.requirement("C7", "C8", "C10")
async def test_the_python_client_resumes_a_call_whose_connection_is_cut(tmp_path):
    """Once: when its resumed connection breaks, it asks for the first id again (mcp 2.3)."""
    async with Bridge([echo("files")]) as bridge:
        arguments = {"nonce": "whole", "steps": 40, "delay": 0.1}
        aim = target(bridge, "files", "progress", arguments)
        async with CuttingRelay(aim.url, b"notifications/progress", every=3, most=1) as relay:
            through = dataclasses.replace(aim, url=relay.url)
            seen = await drivers.python_mcp(through, "legacy", tmp_path)

    assert relay.cuts == 1
    assert (seen.text, seen.progress) == ("whole", 40)


@pytest.mark.requirement("C7", "C8", "C10")
@pytest.mark.parametrize(("script", "mode"), [("ts_v1.mjs", "handshake"), ("ts_v2.mjs", "legacy")])
async def test_a_typescript_client_resumes_a_call_whose_connection_is_cut(
    script, mode, need, tmp_path
):
    need("clients")
    async with Bridge([echo("files")]) as bridge:
        arguments = {"nonce": "whole", "steps": 40, "delay": 0.1}
        aim = target(bridge, "files", "progress", arguments)
        async with CuttingRelay(aim.url, b"notifications/progress", every=3, most=2) as relay:
            through = dataclasses.replace(aim, url=relay.url)
            seen = await drivers.node_script(script, through, mode, tmp_path)

    assert relay.cuts == 2
    assert (seen.text, seen.progress) == ("whole", 40)


@pytest.mark.parametrize(
    ("mode", "version"), [("legacy", LATEST), ("auto", MODERN), (MODERN, MODERN)]
)
async def test_the_second_typescript_client_lists_and_calls(mode, version, everything, tmp_path):
    async with Bridge([everything]) as bridge:
        seen = await drivers.node_script("ts_v2.mjs", target(bridge, "everything"), mode, tmp_path)

    assert seen.version == version
    assert "echo" in seen.tools
    assert seen.text == "Echo: across"


@pytest.mark.parametrize("era", ["legacy", "auto", "modern"])
async def test_the_inspector_command_line_lists_and_calls(era, everything, tmp_path):
    async with Bridge([everything]) as bridge:
        seen = await drivers.inspector(target(bridge, "everything"), era, tmp_path)

    assert "echo" in seen.tools
    assert seen.text == "Echo: across"


async def test_mcp_remote_carries_a_stdio_client_to_the_server(everything, tmp_path):
    async with Bridge([everything]) as bridge:
        seen = await drivers.mcp_remote(target(bridge, "everything"), tmp_path)

    assert seen.version in (LATEST, MODERN)
    assert "echo" in seen.tools
    assert seen.text == "Echo: across"


async def test_a_refused_token_ends_the_python_client_with_an_error(tmp_path):
    async with Bridge([echo("files")]) as bridge:
        refused = drivers.Target(bridge.url("files"), "mcpb_" + "x" * 43, "echo", WORDS)
        with pytest.raises(drivers.ClientError, match="the token is not valid here"):
            await drivers.python_mcp(refused, "auto", tmp_path)
