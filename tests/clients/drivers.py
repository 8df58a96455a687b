"""Run one real client, headless, against one URL, and tell what it saw."""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clients import setup, venvs
from support.waiting import PATIENCE

HERE = Path(__file__).resolve().parent
RUN_TIMEOUT = 60.0 * PATIENCE  # seconds for one client, start to end; the slowest needs about 5
ANSWER_TIMEOUT = 30.0 * PATIENCE  # seconds for one answer of a client that is spoken to by hand
END_TIMEOUT = 5.0  # seconds from SIGTERM to SIGKILL
LINE_LIMIT = 1 << 20  # bytes of one line that a client prints


@dataclass(frozen=True, slots=True)
class Target:
    """Which endpoint is driven, with which token, and which tool is called."""

    url: str
    token: str
    tool: str
    arguments: Mapping[str, Any]

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@dataclass(frozen=True, slots=True)
class Seen:
    """What a client reported.

    Attributes:
        version: the revision it negotiated; empty where it does not tell.
        progress: how many progress notifications reached it; -1 where it does not tell.
        asked: how many elicitations it has answered; -1 where it does not tell.
    """

    version: str
    tools: tuple[str, ...]
    text: str
    progress: int = -1
    asked: int = -1


class ClientError(Exception):
    """The client did not get through; the message is the end of what it said."""


def environment(state: Path) -> dict[str, str]:
    """Nothing of the caller's but PATH; HOME is a folder of the test's own.

    With an authority's certificate in it (support/authority.py) the client trusts that, too.
    """
    path = os.environ.get("PATH", os.defpath)
    if setup.installed():
        path = f"{setup.node().parent}{os.pathsep}{path}"
    authority = state / "ca.pem"
    trusts = (
        {"SSL_CERT_FILE": str(authority), "NODE_EXTRA_CA_CERTS": str(authority)}
        if authority.exists()
        else {}
    )
    return {
        **trusts,
        "PATH": path,
        "HOME": str(state),
        "MCP_REMOTE_CONFIG_DIR": str(state),
        "DO_NOT_TRACK": "1",
        "NO_COLOR": "1",
        "FASTMCP_CHECK_FOR_UPDATES": "off",
    }


async def output_of(
    command: Sequence[str], state: Path, more: Mapping[str, str] | None = None
) -> str:
    """Run a client to its end and return what it printed; `more` joins its environment.

    Raises:
        ClientError: it failed, or was not done within RUN_TIMEOUT.
    """
    status, out, err = await ended(command, {**environment(state), **(more or {})})
    if status != 0:
        raise ClientError((err or out).decode(errors="replace")[-2000:])
    return out.decode()


async def ended(
    command: Sequence[str], environ: Mapping[str, str], folder: Path | None = None
) -> tuple[int, bytes, bytes]:
    """Run a client to its end: status, stdout and stderr.

    Raises:
        ClientError: it was not done within RUN_TIMEOUT.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(environ),
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(RUN_TIMEOUT):
            out, err = await process.communicate()
    except TimeoutError:
        raise ClientError(f"not done after {RUN_TIMEOUT:.0f} s") from None
    finally:
        await end(process)
    return process.returncode or 0, out, err


async def end(process: asyncio.subprocess.Process) -> None:
    """End a client and everything it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            async with asyncio.timeout(END_TIMEOUT):
                await process.wait()
        except TimeoutError:
            continue


def last_line(text: str) -> dict[str, Any]:
    document = json.loads(text.strip().splitlines()[-1])
    assert isinstance(document, dict)
    return document


def _seen(document: Mapping[str, Any]) -> Seen:
    return Seen(
        version=str(document["version"]),
        tools=tuple(document["tools"]),
        text=document["text"],
        progress=document["progress"],
        asked=document["asked"],
    )


def _words(target: Target, mode: str) -> list[str]:
    return [
        target.url,
        mode,
        json.dumps(target.headers),
        target.tool,
        json.dumps(target.arguments),
    ]


async def python_mcp(target: Target, mode: str, state: Path) -> Seen:
    command = [sys.executable, str(HERE / "drive_mcp.py"), *_words(target, mode)]
    return _seen(last_line(await output_of(command, state)))


async def fastmcp(target: Target, mode: str, state: Path) -> Seen:
    python = str(venvs.home("fastmcp") / "bin" / "python")
    command = [python, str(HERE / "drive_fastmcp.py"), *_words(target, mode)]
    return _seen(last_line(await output_of(command, state)))


async def fastmcp_command(target: Target, state: Path) -> Seen:
    """The command line of fastmcp, which takes a bearer token and no other header."""
    program = str(venvs.home("fastmcp") / "bin" / "fastmcp")
    options = ["--json", "--auth", target.token]
    listed = json.loads(await output_of([program, "list", target.url, *options], state))
    arguments = [f"{name}={value}" for name, value in target.arguments.items()]
    call = [program, "call", target.url, target.tool, *arguments, *options]
    called = json.loads(await output_of(call, state))
    return Seen(
        version="",
        tools=tuple(tool["name"] for tool in find(listed, "tools")),
        text=find(called, "content")[0]["text"],
    )


async def node_script(name: str, target: Target, mode: str, state: Path) -> Seen:
    # An ES module finds its packages beside itself only, so the script is copied to them.
    script = setup.home() / name
    await asyncio.to_thread(shutil.copy, HERE / name, script)
    command = [str(setup.node()), str(script), *_words(target, mode)]
    return _seen(last_line(await output_of(command, state)))


async def over_stdio(
    script: str, command: Sequence[str], mode: str, calls: object, state: Path, **more: str
) -> dict[str, Any]:
    """What a client of an official SDK saw of a stdio server; `more` joins its environment."""
    words = [json.dumps(command), mode, json.dumps(calls)]
    if script.endswith(".py"):
        client = [sys.executable, str(HERE / script)]
    else:
        copied = setup.home() / script
        await asyncio.to_thread(shutil.copy, HERE / script, copied)
        client = [str(setup.node()), str(copied)]
    return last_line(await output_of([*client, *words], state, more))


async def inspector(target: Target, era: str, state: Path) -> Seen:
    launcher = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    base = [str(setup.node()), str(setup.home() / "node_modules" / launcher), "--cli"]
    base += ["--server-url", target.url, "--transport", "http", "--protocol-era", era]
    base += ["--format", "json", "-q"]
    for name, value in target.headers.items():
        base += ["--header", f"{name}: {value}"]
    listed = json.loads(await output_of([*base, "--method", "tools/list"], state))
    call = [*base, "--method", "tools/call", "--tool-name", target.tool]
    for name, value in target.arguments.items():
        call += ["--tool-arg", f"{name}={value}"]
    called = json.loads(await output_of(call, state))
    return Seen(
        version="",
        tools=tuple(tool["name"] for tool in find(listed, "tools")),
        text=find(called, "content")[0]["text"],
    )


def find(document: object, key: str) -> Any:
    """Return the value of the first such key, at whatever depth the client wraps it."""
    if isinstance(document, dict):
        if key in document:
            return document[key]
        for value in document.values():
            if (found := find(value, key)) is not None:
                return found
    return None


async def mcp_remote(target: Target, state: Path) -> Seen:
    command = [str(setup.node()), str(setup.home() / "node_modules/mcp-remote/dist/proxy.js")]
    command += [target.url, "--allow-http", "--transport", "http-only"]
    for name, value in target.headers.items():
        command += ["--header", f"{name}:{value}"]
    return await _through_stdio(command, target, state)


async def supergateway(target: Target, state: Path) -> Seen:
    program = setup.home() / "node_modules/supergateway/dist/index.js"
    command = [str(setup.node()), str(program), "--streamableHttp", target.url]
    command += ["--logLevel", "none"]
    for name, value in target.headers.items():
        command += ["--header", f"{name}: {value}"]
    return await _through_stdio(command, target, state)


async def mcp_proxy(target: Target, state: Path) -> Seen:
    """The mcp-proxy of PyPI, on the first generation of the Python SDK."""
    program = venvs.home("mcp-proxy") / "bin" / "mcp-proxy"
    command = [str(program), "--transport", "streamablehttp"]
    for name, value in target.headers.items():
        command += ["--headers", name, value]
    return await _through_stdio([*command, target.url], target, state)


async def _through_stdio(command: Sequence[str], target: Target, state: Path) -> Seen:
    """Speak the handshake by hand to the stdio side of a client."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment(state),
        limit=LINE_LIMIT,
        start_new_session=True,
    )
    talk = Talk(process)
    try:
        offer = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "drive", "version": "1"},
        }
        version = (await talk.ask("initialize", offer))["protocolVersion"]
        talk.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        tools = (await talk.ask("tools/list", {}))["tools"]
        call = {
            "name": target.tool,
            "arguments": target.arguments,
            "_meta": {"progressToken": "p"},
        }
        result = await talk.ask("tools/call", call)
        return Seen(
            version,
            tuple(tool["name"] for tool in tools),
            result["content"][0]["text"],
            talk.progress,
            talk.asked,
        )
    finally:
        await end(process)


class Talk:
    """Line-delimited JSON-RPC over a client's stdin and stdout."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in = process.stdin
        self._out = process.stdout
        self._last_id = 0
        self.progress = 0
        self.asked = 0

    def say(self, message: Mapping[str, Any]) -> None:
        self._in.write(json.dumps(message).encode() + b"\n")

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._last_id += 1
        self.say({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                return await self._answer()
        except TimeoutError:
            raise ClientError(f"no answer to {method} within {ANSWER_TIMEOUT:.0f} s") from None

    async def _answer(self) -> dict[str, Any]:
        while line := await self._out.readline():
            message = json.loads(line)
            if message.get("method") == "notifications/progress":
                self.progress += 1
            if message.get("method") == "elicitation/create":
                self.asked += 1
                filled = {"username": "me", "email": "m@e"}
                accepted = {"action": "accept", "content": filled}
                self.say({"jsonrpc": "2.0", "id": message["id"], "result": accepted})
            if message.get("id") == self._last_id and "method" not in message:
                if "error" in message:
                    raise ClientError(json.dumps(message["error"]))
                return dict(message["result"])
        raise ClientError("it ended in mid-conversation")
