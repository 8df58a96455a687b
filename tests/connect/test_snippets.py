"""Each client's entry, as `mcp-bridge client --write` writes it, leads that client to the server."""

import json
import os
import re
import tomllib
from pathlib import Path

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.connect.clients import CLIENTS
from clients import drivers
from connect import agents
from support.bridge import Bridge
from support.commands import run
from support.fakes import echo

pytestmark = pytest.mark.clients

VARIABLE = "MCP_BRIDGE_TOKEN_FILES"
WORDS = {"text": "across"}
# The clients that have no program without a screen: their files are read as they document them.
BY_SDK = ("claude-desktop", "cursor", "vscode", "windsurf")
# How each of them writes a variable, or what it asks for.
_REFERENCE = {
    "cursor": re.compile(r"\$\{env:(\w+)\}"),
    "windsurf": re.compile(r"\$\{env:(\w+)\}"),
    "vscode": re.compile(r"\$\{input:([\w-]+)\}"),
}
BY_ITSELF = ("claude-code", "codex", "gemini")


def places_of(bridge):
    return Places(bridge.config_dir, bridge.state_dir, bridge.runtime_dir)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home directory, in which no variable of the caller's moves a file."""
    for client in CLIENTS.values():
        if client.moved:
            monkeypatch.delenv(client.moved[0], raising=False)
    monkeypatch.delenv("SUDO_UID", raising=False)
    made = tmp_path / "home"
    made.mkdir()
    monkeypatch.setenv("HOME", str(made))
    return made


@pytest.fixture
def project(tmp_path, monkeypatch):
    made = tmp_path / "project"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


def written(bridge, client, *words):
    """Write the entry; the client's file."""
    done = run(places_of(bridge), "client", "files", "--for", client, "--write", "--json", *words)
    assert done.status == 0, done.err
    return Path(json.loads(done.out)["file"])


def environ(home, token):
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "HOME": str(home), VARIABLE: token, "NO_COLOR": "1"}


async def connected(client, folder, variables):
    """Whether the client, by its own word, reaches `files`; Codex calls a tool of it, too."""
    if client == "codex":
        return "across" in await agents.ask_codex(folder, variables, "files", "echo", WORDS)
    ask = {"claude-code": agents.ask_claude, "gemini": agents.ask_gemini}[client]
    said = await ask(folder, variables)
    (line,) = (line for line in said.splitlines() if "files:" in line)
    return re.search(r"\bConnected\b", line) is not None


def test_every_client_of_the_table_is_driven(record_property):
    assert sorted((*BY_SDK, *BY_ITSELF)) == sorted(CLIENTS)
    record_property("clients", len(CLIENTS))


@pytest.mark.agents
@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("client", BY_ITSELF)
async def test_a_client_without_a_screen_connects_by_its_own_file(
    client, scope, need, home, project
):
    need("agents")
    async with Bridge([echo("files")]) as bridge:
        written(bridge, client, "--scope", scope)
        agents.trust(home, project)

        assert await connected(client, project, environ(home, bridge.token("files")))
        assert not await connected(client, project, environ(home, "mcpb_of_nobody"))


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("client", [name for name in BY_SDK if CLIENTS[name].remote])
async def test_a_client_with_a_screen_is_led_by_what_its_file_says(
    client, scope, home, project, tmp_path
):
    if scope == "project" and CLIENTS[client].project is None:
        scope = "user"
    async with Bridge([echo("files")]) as bridge:
        file = written(bridge, client, "--scope", scope)
        document = json.loads(file.read_text())
        entry = document[CLIENTS[client].key]["files"]
        (url,) = (value for key, value in entry.items() if key.lower().endswith("url"))
        (asked,) = _REFERENCE[client].findall(entry["headers"]["Authorization"])
        if client == "vscode":
            (question,) = document["inputs"]
            assert (question["id"], question["password"]) == (asked, True)
        else:
            assert asked == VARIABLE
        bearer = _REFERENCE[client].sub(bridge.token("files"), entry["headers"]["Authorization"])
        assert bearer == f"Bearer {bridge.token('files')}"

        target = drivers.Target(url, bearer.removeprefix("Bearer "), "echo", WORDS)
        seen = await drivers.python_mcp(target, "auto", tmp_path)

    assert "across" in seen.text


def program_of(client, file):
    """Command and arguments of the entry, whatever the client's syntax."""
    text = file.read_text()
    document = tomllib.loads(text) if client == "codex" else json.loads(text)
    entry = document[CLIENTS[client].key]["files"]
    return entry["command"], entry["args"]


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_client_that_starts_a_program_is_led_by_the_token_s_file(
    client, home, project, tmp_path
):
    async with Bridge([echo("files")]) as bridge:
        token_file = tmp_path / "token"
        file = written(bridge, client, "--token-file", str(token_file), "--new-token")
        command, arguments = program_of(client, file)
        assert bridge.token("files") not in file.read_text()

        program = StdioServerParameters(command=command, args=arguments, env=environ(home, ""))
        async with Client(stdio_client(program)) as session:
            result = await session.call_tool("echo", WORDS)

    assert "across" in result.content[0].text


@pytest.mark.agents
@pytest.mark.parametrize("client", BY_ITSELF)
async def test_a_client_without_a_screen_starts_the_program_itself(
    client, need, home, project, tmp_path
):
    need("agents")
    async with Bridge([echo("files")]) as bridge:
        words = ("--token-file", str(tmp_path / "token"))
        written(bridge, client, *words, "--new-token")
        agents.trust(home, project)

        assert await connected(client, project, environ(home, ""))
