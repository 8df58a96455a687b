"""Claude Code, Codex and Gemini CLI from npm: installed as locked, asked what they are connected to.

    python tests/connect/agents.py          install what is missing, print the folder
    python tests/connect/agents.py --lock   also renew package-lock.json

They are 900 MB, most of it two programs, and installed in half a minute; nobody logs in anywhere.
"""

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from clients.drivers import LINE_LIMIT, RUN_TIMEOUT, ClientError, end, ended
from clients.setup import CannotInstallError, cache_dir, install_locked, run_npm

HERE = Path(__file__).resolve().parent / "agents"
FILES = ("package.json", "package-lock.json")
_MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)


def home() -> Path:
    digest = hashlib.sha256((HERE / FILES[1]).read_bytes()).hexdigest()
    return cache_dir() / f"agents-{digest[:12]}"


def install() -> Path:
    """Install the clients unless they are there; return their folder (raises as `install_locked`)."""
    files = [HERE / name for name in FILES]
    return install_locked(home(), files, "install", "--no-save", made=(claude(), codex()))


def claude() -> Path:
    return home() / f"node_modules/@anthropic-ai/claude-code-linux-{_MACHINE}/claude"


def codex() -> Path:
    machine = f"{os.uname().machine}-unknown-linux-musl"
    return home() / f"node_modules/@openai/codex-linux-{_MACHINE}/vendor/{machine}/bin/codex"


def trust(person: Path, folder: Path) -> None:
    """Let the folder's servers in, as a person does once, in files of that home directory."""
    _add(person / ".claude/settings.json", '{"enableAllProjectMcpServers": true}')
    _add(person / ".codex/config.toml", f'\n[projects."{folder}"]\ntrust_level = "trusted"\n')


async def ask_claude(folder: Path, environ: Mapping[str, str]) -> str:
    """What `claude mcp list` says: it connects to each server that is let in."""
    quiet = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    return await _output([str(claude()), "mcp", "list"], folder, {**environ, **quiet})


async def ask_gemini(folder: Path, environ: Mapping[str, str]) -> str:
    """What `gemini mcp list` says: it connects to each server in a folder that is trusted."""
    bundle = home() / "node_modules/@google/gemini-cli/bundle/gemini.js"
    trusted = {**environ, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    return await _output(["node", str(bundle), "mcp", "list"], folder, trusted)


async def ask_codex(
    folder: Path, environ: Mapping[str, str], server: str, tool: str, arguments: dict[str, Any]
) -> str:
    """What the tool answers to Codex's app server, in a folder that it trusts; empty: nothing."""
    process = await asyncio.create_subprocess_exec(
        *(str(codex()), "app-server"),
        cwd=folder,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=dict(environ),
        limit=LINE_LIMIT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(RUN_TIMEOUT):
            me = {"name": "drive", "title": "drive", "version": "1"}
            await _call(process, 1, "initialize", {"clientInfo": me})
            _say(process, {"method": "initialized"})
            begun = await _call(process, 2, "thread/start", {"cwd": str(folder)})
            thread = {"threadId": begun["thread"]["id"]}
            found = await _call(process, 3, "mcpServerStatus/list", thread)
            if not any(row["name"] == server and tool in row["tools"] for row in found["data"]):
                return ""
            call = {**thread, "server": server, "tool": tool, "arguments": arguments}
            answer = await _call(process, 4, "mcpServer/tool/call", call)
            return str(answer["content"][0]["text"])
    except TimeoutError:
        raise ClientError(f"no answer within {RUN_TIMEOUT:.0f} s") from None
    finally:
        await end(process)


def _add(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    with file.open("a", encoding="utf-8") as end_of_file:
        end_of_file.write(text)


def _say(process: asyncio.subprocess.Process, message: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


async def _call(
    process: asyncio.subprocess.Process, number: int, method: str, params: dict[str, Any]
) -> dict[str, Any]:
    _say(process, {"id": number, "method": method, "params": params})
    assert process.stdout is not None
    while line := await process.stdout.readline():
        answer = json.loads(line)
        if answer.get("id") == number and "method" not in answer:
            if "error" in answer:
                raise ClientError(json.dumps(answer["error"]))
            return dict(answer["result"])
    raise ClientError(f"it ended before it answered {method}")


async def _output(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> str:
    _, out, err = await ended(command, environ, folder)
    return (out + err).decode(errors="replace")


def main() -> int:
    try:
        if "--lock" in sys.argv[1:]:
            run_npm(HERE, "install", "--package-lock-only", "--omit-lockfile-registry-resolved")
        print(install())
    except CannotInstallError as error:
        print(f"the clients cannot be installed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
