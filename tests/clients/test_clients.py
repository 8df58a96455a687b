"""Real clients initialize (or discover), list and call through the real proxy."""

import dataclasses
from pathlib import Path

import pytest

from clients import drivers, setup
from clients.runs import LATEST, MODERN, RUNS
from support.bridge import Bridge
from support.cutting import CuttingRelay
from support.fakes import echo

pytestmark = pytest.mark.clients

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


@pytest.mark.parametrize("run", RUNS, ids=str)
async def test_a_real_client_lists_calls_and_hears_of_progress(run, everything, need, tmp_path):
    need(run.needs)
    async with Bridge([everything]) as bridge:
        aim = slow(bridge) if run.progress else target(bridge, "everything")
        seen = await run.drive(aim, tmp_path)

    assert seen.version == run.told
    assert "echo" in seen.tools
    assert ("completed" if run.progress else "Echo: across") in seen.text
    if run.progress:
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


async def test_a_refused_token_ends_the_python_client_with_an_error(tmp_path):
    async with Bridge([echo("files")]) as bridge:
        refused = drivers.Target(bridge.url("files"), "mcpb_" + "x" * 43, "echo", WORDS)
        with pytest.raises(drivers.ClientError, match="the token is not valid here"):
            await drivers.python_mcp(refused, "auto", tmp_path)
