"""`mcp-bridge stdio`: what a client that knows only stdio gets, beside what HTTP gives directly."""

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from functools import cache

import pytest

from clients import drivers
from conformance import bars, cells, suite
from support import reachable
from support.bridge import Bridge
from support.byhand import ByHand
from support.client import text_of
from support.fakes import echo
from support.far import Far
from support.issuer import free_port

PROGRAM = ("-m", "autobot_mcp_bridge.cli.main")
ASKING = [
    ["test_elicitation", {"message": "who?"}],
    ["test_sampling", {"prompt": "what?"}],
    ["test_tool_with_progress", {}],
]
ASKING_MODERN = [
    ["test_input_required_result_elicitation", {}],
    ["test_input_required_result_sampling", {}],
    ["test_input_required_result_list_roots", {}],
    ["test_tool_with_progress", {}],
]


# ---- the conformance suite ----


def shim(far, name):
    """A server of the near proxy, whose clients speak HTTP and which itself is spoken to by stdio."""
    return {
        "name": name,
        "sessions": bars.ISOLATED,
        "command": [reachable.python(), "-I", *PROGRAM, "stdio", far.url(name)],
        "env": {"MCP_BRIDGE_TOKEN": far.token(name)},
    }


async def compared(revision):
    """The suite's reports of one revision: directly, and through the shim."""
    servers = [cells.definition(bars.ISOLATED, "both", name) for name in ("direct", "shim")]
    async with Bridge(servers) as far, Bridge([shim(far, "shim")]) as near:

        async def run(bridge, name):
            headers = {"Authorization": f"Bearer {bridge.token(name)}"}
            return await suite.run(bridge.url(name), headers, revision)

        return await run(far, "direct"), await run(near, "shim")


@cache
def reports(revision):
    return asyncio.run(compared(revision))


@pytest.mark.conformance
@pytest.mark.parametrize("revision", suite.REVISIONS)
def test_as_many_scenarios_pass_through_the_shim_as_directly(revision, need, record_property):
    need("clients")
    direct, through = reports(revision)
    record_property(f"passed_{revision}", through.passed)

    assert direct.passed == bars.OF[revision]
    assert through.passed == direct.passed, [one.name for one in through.failing]


# ---- clients of official SDKs ----


@pytest.mark.clients
@pytest.mark.parametrize(
    ("script", "mode", "calls", "asked"),
    [
        ("drive_stdio.py", "legacy", ASKING, ["elicitation", "sampling"]),
        ("drive_stdio.py", "auto", ASKING_MODERN, ["elicitation", "sampling", "roots"]),
        ("ts_stdio.mjs", "", ASKING, ["elicitation", "sampling"]),
    ],
    ids=["python-handshake", "python-2026-07-28", "typescript-handshake"],
)
async def test_an_official_client_is_asked_and_answers(script, mode, calls, asked, need, tmp_path):
    need("clients")
    async with cells.serving([cells.definition(bars.ISOLATED, "both", "asks")]) as bridge:
        command = [sys.executable, *PROGRAM, *bridge.options, "stdio", "asks"]
        token = {"MCP_BRIDGE_TOKEN": bridge.token("asks")}
        seen = await drivers.over_stdio(script, command, mode, calls, tmp_path, **token)

    assert seen["asked"] == asked
    assert "me" in seen["texts"][0]
    assert "Paris" in seen["texts"][1]
    assert seen["progress"] == 3
    assert "test_simple_text" in seen["tools"]
    if mode:
        assert seen["version"] == {"legacy": "2025-11-25", "auto": "2026-07-28"}[mode]


# ---- where the token comes from, and who calls ----


@asynccontextmanager
async def stdio(*words, options=(), **environment):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *PROGRAM, *options, "stdio", *words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment},
    )
    try:
        yield ByHand(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.fixture
async def far():
    async with Far() as running:
        yield running


@pytest.mark.parametrize("source", ["file", "variable", "credential"])
async def test_the_token_comes_from_a_file_a_variable_or_a_credential(far, source, tmp_path):
    file = tmp_path / "mcp-bridge-token"
    file.write_text("from-there\n")
    file.chmod(0o600)
    words = ["--token-file", str(file)] if source == "file" else []
    environment = {
        "file": {},
        "variable": {"MCP_BRIDGE_TOKEN": "from-there"},
        "credential": {"CREDENTIALS_DIRECTORY": str(tmp_path)},
    }[source]
    async with stdio(far.url, *words, **environment) as shim:
        assert "result" in await shim.initialize()
        assert await shim.end() == (0, "")

    assert far.headers["Authorization"] == "Bearer from-there"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
async def test_a_token_file_that_others_may_read_is_refused_with_its_mode(far, mode, tmp_path):
    file = tmp_path / "token"
    file.write_text("secret-of-mine")
    file.chmod(mode)
    async with stdio(far.url, "--token-file", str(file)) as shim:
        status, said = await shim.end()

    assert status == 77
    assert f"{mode:04o}" in said
    assert "chmod 600" in said
    assert "secret-of-mine" not in said


async def test_a_name_is_a_server_of_the_running_proxy_with_its_header_file():
    async with Bridge([echo("files")]) as bridge:
        headers = bridge.state_dir / "headers.d"
        headers.mkdir(mode=0o700, parents=True)
        file = headers / "files"
        file.write_text(f"Authorization: Bearer {bridge.token('files')}\n")
        file.chmod(0o600)
        async with stdio("files", options=bridge.options) as shim:
            assert (await shim.initialize())["result"]["serverInfo"]["name"] == "fake"
            assert (await shim.end())[0] == 0


@pytest.mark.requirement("SM-01")
async def test_agent_id_and_type_are_sent_stripped(far):
    async with stdio(far.url, "--identity", AGENT_ID=" a-1 ", AGENT_TYPE="res_earch") as shim:
        assert "result" in await shim.initialize()
        await shim.end()

    assert far.headers["X-Agent-ID"] == "a-1"
    assert far.headers["X-Agent-Type"] == "res_earch"


@pytest.mark.requirement("SM-01")
async def test_without_agent_id_and_type_none_is_sent(far):
    async with stdio(far.url) as shim:
        assert "result" in await shim.initialize()
        await shim.end()

    assert not {"X-Agent-ID", "X-Agent-Type"} & far.headers.keys()


@pytest.mark.requirement("SM-01")
@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({}, ["AGENT_ID and AGENT_TYPE"]),
        ({"AGENT_ID": "a"}, ["AGENT_TYPE: not set"]),
        ({"AGENT_ID": "a\n", "AGENT_TYPE": "b"}, ["AGENT_ID: allowed"]),
        ({"AGENT_ID": "A", "AGENT_TYPE": "b" * 64}, ["AGENT_ID: allowed", "AGENT_TYPE: allowed"]),
        ({"AGENT_ID": "a_b", "AGENT_TYPE": "-b"}, ["AGENT_ID: allowed", "AGENT_TYPE: allowed"]),
    ],
)
async def test_a_missing_or_wrong_identity_is_one_error_that_names_all(far, environment, named):
    async with stdio(far.url, "--identity", **environment) as shim:
        status, said = await shim.end()

    assert status == 64
    assert len(said.splitlines()) == 1
    assert all(each in said for each in named)
    assert far.headers == {}


@pytest.mark.requirement("SM-07")
async def test_whoever_begins_and_cannot_go_on_is_told_why_in_an_answer(far):
    far.status = 401
    async with stdio(far.url) as shim:
        answer = await shim.initialize()
        status, said = await shim.end()

    assert "401" in answer["error"]["message"]
    assert status == 77
    assert "401" in said


@pytest.mark.requirement("SM-07")
async def test_a_desktop_clients_shim_outlives_an_upstream_that_is_away(far):
    async with stdio(far.url) as shim:
        assert "result" in await shim.initialize()
        await far.close()
        lost = await shim.ask("tools/list", ident=2)
        assert "connection refused" in lost["error"]["message"]
        await far.open()
        assert "result" in await shim.ask("tools/list", ident=3)
        await shim.end()


@pytest.mark.requirement("SM-07")
async def test_a_desktop_clients_shim_goes_on_when_the_proxy_was_restarted():
    host = {"listen": {"port": free_port()}}
    async with Bridge([echo("files")], host=host) as bridge:
        token = bridge.token("files")
        async with stdio(bridge.url("files"), MCP_BRIDGE_TOKEN=token) as shim:
            assert "result" in await shim.initialize()
            shim.send(method="notifications/initialized")
            called = {"name": "echo", "arguments": {"text": "before"}}
            assert "result" in await shim.ask("tools/call", called, 2)
            await bridge.stop()
            await bridge.start()
            answer = await shim.ask(
                "tools/call", {"name": "echo", "arguments": {"text": "after"}}, 3
            )

            assert text_of(answer) == "after"
            assert (await shim.end())[0] == 0
