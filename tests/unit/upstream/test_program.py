"""The program as a process: what it is told, what it reads, how it ends."""

import asyncio
import json
import os
import signal
import sys
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from support.byhand import ByHand
from support.waiting import eventually, remains

HELD = 32_000_000  # bytes: the buffers of two sockets, two pipes and the program, with room
WORDS = ("-I", "-m", "autobot_mcp_bridge.upstream")


@asynccontextmanager
async def program(far, *words, headers=None, stdin=asyncio.subprocess.PIPE, **environment):
    told = {"MCP_BRIDGE_HEADERS": json.dumps(headers)} if headers else {}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *WORDS, far.url, "--allow", "127.0.0.1", *words),
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], **told, **environment},
    )
    try:
        yield ByHand(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()  # wait() alone never ends while its output is not read


SECRET = {"Authorization": {"variable": "MCP_HEADER_AUTHORIZATION", "prefix": "Bearer "}}


async def test_a_secret_is_read_from_the_file_that_its_variable_names(far, tmp_path):
    file = tmp_path / "MCP_HEADER_AUTHORIZATION.file"
    file.write_text("sesame\n")
    path = {"MCP_HEADER_AUTHORIZATION": str(file)}
    async with program(far, headers={**SECRET, "X-Team": "web"}, **path) as running:
        assert "result" in await running.initialize()
        assert await running.end() == (0, "")

    assert far.headers["Authorization"] == "Bearer sesame"
    assert far.headers["X-Team"] == "web"


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("two\nlines", "one line of ASCII"),
        ("", "one line of ASCII"),
        ("ä", "one line"),
        (None, "No such"),
    ],
)
async def test_a_secret_that_is_none_for_a_header_is_told_without_it(far, tmp_path, text, clause):
    file = tmp_path / "secret"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    path = {"MCP_HEADER_AUTHORIZATION": str(file)}
    async with program(far, headers=SECRET, **path) as running:
        status, said = await running.end()

    assert status == 78
    assert said.startswith("mcp-bridge: header Authorization: ")
    assert clause in said
    assert not text or text not in said


async def test_a_key_that_the_far_end_repeats_is_not_in_the_log(far):
    async def repeats(request, message):
        error = {"code": -32000, "message": f"bad {request.headers['Authorization']}"}
        body = {"jsonrpc": "2.0", "id": message["id"], "error": error}
        return web.json_response(body, status=403)

    far.answers["initialize"] = repeats
    async with program(far, headers={"Authorization": "Bearer open-sesame"}) as running:
        assert await running.initialize() is None
        status, said = await running.end()

    assert status == 77
    assert "answers 403" in said
    assert "sesame" not in said


async def test_a_line_beyond_the_bound_ends_the_program(far):
    async with program(far, "--most", "1000") as running:
        running.write(b"x" * 5000 + b"\n")
        assert await running.read() is None
        status, said = await running.end()

    assert status == 65
    assert "at most 1000 bytes" in said


async def test_what_is_no_pipe_is_refused_in_words(far, tmp_path):
    file = tmp_path / "in"
    file.write_bytes(b"")
    with file.open("rb") as stdin:
        async with program(far, stdin=stdin) as running:
            assert await running.process.stderr.read() == (
                b"mcp-bridge: stdin: allowed is a pipe, a socket or a terminal\n"
            )
            assert await running.process.wait() == 65


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_session_and_the_program(far, number):
    async with program(far) as running:
        assert "result" in await running.initialize()
        running.process.send_signal(number)
        assert await running.process.wait() == 0

    assert far.methods[-1] == "DELETE"


async def test_a_far_end_that_is_slow_to_delete_holds_nobody_up(far):
    async with program(far) as running:
        assert "result" in await running.initialize()
        far.deletes = asyncio.Event()
        status, _ = await running.end()
        far.deletes.set()

    assert status == 0


async def test_a_client_that_does_not_read_is_waited_for(far):
    """What comes meanwhile stays at the far end, whose sends do not go on."""
    sent = 0

    async def floods(request, message):
        nonlocal sent
        reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await reply.prepare(request)
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 9000}}
        data = b"data: " + json.dumps(note).encode() + b"\n\n"
        while sent < 200_000_000:
            await reply.write(data)
            sent += len(data)
        return reply

    far.answers["tools/call"] = floods
    async with program(far) as running:
        assert "result" in await running.initialize()
        running.send(id=2, method="tools/call", params={"name": "x"})
        await eventually(lambda: sent > 0)

        await remains(lambda: sent < HELD, during=2)
