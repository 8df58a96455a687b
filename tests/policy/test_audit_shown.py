"""What is shown of the records, and what is in none (SM-81, SM-82, SM-83)."""

import asyncio
import json
import sys
from contextlib import suppress

import pytest
import pytest_asyncio

from support.audited import audit, recorded
from support.bridge import Bridge
from support.fakes import echo
from support.waiting import eventually
from support.wire import exchange

pytestmark = pytest.mark.asyncio(loop_scope="module")

SENTINEL = "S3ntinel-0f-the-tests"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    async with Bridge([echo("files"), echo("web", tenant="acme", project="site")]) as running:
        yield running


@pytest.mark.requirement("SM-81", "SM-82", "SM-83")
async def test_a_secret_is_in_no_record_no_log_and_no_metric():
    """In arguments by key, form and value, in a tool's name, an error, and what a server prints."""
    variable, token = "the-Variable-of-the-tests", "ghp_" + "Sentinel0123456789"
    servers = [echo("files", env={"API_KEY": variable})]
    async with Bridge(servers, host={"audit": {"stderr": "all"}}) as bridge:
        async with bridge.session("files") as session, bridge.modern("files") as client:
            for each in (session, client):
                await each.call("echo", {"password": SENTINEL, "text": f"Bearer {SENTINEL}"})
                await each.call(
                    "echo", {"headers": {"x-api-key": SENTINEL}, "q": f"a {variable} b"}
                )
                await each.call("echo", {f"key {token}": [{"deep": f"it is {token}!"}]})
                await each.call("warn", {"text": f"token={SENTINEL} {variable}"})
                await each.call(token, {})
                await each.request(
                    "prompts/get", {"name": "greet", "arguments": {"secret": SENTINEL}}
                )
                await each.request(f"x/{token}", {})
        await recorded(bridge, 14)
        kept = "".join(path.read_text() for path in (bridge.state_dir / "audit.d").glob("audit*"))
        metrics = (await exchange(f"{bridge.operator}/metrics")).body.decode()
        for place in (kept, bridge.log(), metrics):
            for secret in (SENTINEL, variable, token):
                assert secret not in place
        assert "<redacted-value:API_KEY>" in kept


async def test_the_command_shows_what_is_asked_for(bridge):
    async with bridge.modern("acme.site.web") as client:
        await client.text("echo", text="shown")
        await client.call("fail", {"code": 1, "message": "m"})
    await recorded(bridge, 1, server="web", tool="fail")

    def shown(*words):
        done = audit(bridge, "show", "--json", *words)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    found = shown("--server", "acme.site.web", "--status", "error")
    assert [line["tool"] for line in found] == ["fail"]
    principal = found[0]["principal"][:6]
    for words in (
        ("--tenant", "acme"),
        ("--server", "web"),
        ("--principal", principal),
        ("--tool", "fail", "--since", "1h"),
    ):
        assert found[0] in shown(*words)
    assert shown("--tool", "fail", "--until", "1h") == []
    assert shown("--tenant", "nobody") == []
    table = audit(bridge, "show", "--tool", "fail").stdout
    assert "acme.site.web" in table and "rpc_error" in table
    assert audit(bridge, "show", "--since", "yesterday").returncode == 64


async def test_the_command_goes_on_as_calls_end(bridge):
    words = (*bridge.options, "audit", "show", "-f", "--json", "--tool", "echo")
    shown = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "autobot_mcp_bridge.cli.main", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with bridge.modern("files") as client:

            async def seen():
                """One that begins to look late misses the first calls."""
                await client.text("pid")
                await client.text("echo", text="followed")
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.5):
                        return await shown.stdout.readline()

            line = json.loads(await eventually(seen, within=20))
        assert (line["tool"], line["args"]) == ("echo", {"text": "followed"})
    finally:
        shown.kill()
        await shown.wait()
