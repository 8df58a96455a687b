"""The records of a proxy that is a unit of systemd: whose they are, and what a SIGKILL leaves."""

import asyncio
import json

import pytest

from lab import recipe
from support import product
from support.bridge import new_token
from support.client import text_of
from support.product import PROXY, digest_of, installed_product
from support.proxy_unit import faultless
from support.waiting import eventually

pytestmark = pytest.mark.lab
TOKEN = new_token()
HOST = "/etc/mcp-bridge/host.toml"
DIRECTORY = "/var/lib/mcp-bridge/audit.d"


@pytest.fixture(scope="module", params=recipe.SUITES)
def proxy(request, lab):
    yield from faultless(installed_product(lab, request.param, f"audit-{request.param}"))


def echo(name, **keys):
    return product.echo(name, tokens_sha256=[digest_of(TOKEN)], **keys)


async def shown(proxy, *words):
    """What `mcp-bridge audit show --json` says to root."""
    text = await proxy.run("mcp-bridge", "audit", "show", "--json", *words)
    return [json.loads(line) for line in text.splitlines()]


async def all_of(proxy, number, *words):
    async def enough():
        found = await shown(proxy, *words)
        return found if len(found) >= number else None

    found = await eventually(enough, within=20)
    assert len(found) == number, found
    return found


@pytest.mark.requirement("SM-84")
async def test_the_records_belong_to_the_proxy_alone(proxy):
    async with proxy.serving(echo("kept")):
        async with proxy.session("kept", TOKEN) as client:
            assert text_of(await client.call("echo", {"text": "x", "token": "hunter2"})) == "x"
        (line,) = await all_of(proxy, 1, "--server", "kept", "--tool", "echo")
        assert (line["status"], line["args"]) == ("ok", {"text": "x", "token": "«redacted»"})
        for path, mode in ((DIRECTORY, "700"), (f"{DIRECTORY}/audit.jsonl", "600")):
            found = await proxy.run("stat", "-c", "%a %U", path)
            assert found.split() == [mode, "mcp-bridge"]
        assert "as they were written" in await proxy.run("mcp-bridge", "audit", "verify")


@pytest.mark.requirement("SM-80")
async def test_the_journal_has_the_same_lines_with_their_words_as_fields(proxy):
    await asyncio.to_thread(proxy.product.write, HOST, '[audit]\nstderr = "all"\n')
    try:
        async with proxy.serving(echo("told")):
            await proxy.run("mcp-bridge", "apply")
            await proxy.restart()
            async with proxy.session("told", TOKEN) as client:
                await client.text("echo", text="in the journal")
                await client.call("none")
            (line, _) = await all_of(proxy, 2, "--server", "told")

            def entries():
                return proxy.product.entries("MCP_INSTANCE=told", "MCP_EVENT=tool_call")

            found = await eventually(lambda: asyncio.to_thread(entries), within=20)
            assert found[0]["MCP_STATUS"] == "ok"
            assert found[0]["MCP_TOOL"] == "echo"
            assert json.loads(found[0]["MESSAGE"]) == line
            assert found[0]["_SYSTEMD_UNIT"] == PROXY
    finally:
        await asyncio.to_thread(proxy.product.write, HOST, "")
        await proxy.run("mcp-bridge", "apply")
        await proxy.restart()


async def test_restarts_go_on_with_the_chain_and_a_sigkill_says_what_it_took(proxy):
    async with proxy.serving(echo("open")):
        async with proxy.session("open", TOKEN) as client:
            await client.text("echo", text="1")
            await proxy.restart()
            await client.text("echo", text="2")
            await all_of(proxy, 2, "--server", "open", "--tool", "echo")
            sent = [
                asyncio.create_task(client.send(client.call_of("wait", {"tag": f"t{number}"})))
                for number in range(3)
            ]

            async def waiting():
                return len(json.loads(await client.text("state"))["waiting"]) == 3

            await eventually(waiting, within=20)
            await proxy.kill()
            await asyncio.gather(*sent, return_exceptions=True)
            await client.text("echo", text="3")
            await all_of(proxy, 3, "--server", "open", "--tool", "echo")
        started = [line for line in await shown(proxy) if line["event"] == "audit_started"]
        # Those that wait, and at most the question whether they do.
        assert started[-1]["unrecorded"] in (3, 4)
        assert [line["unrecorded"] for line in started[:-1]] == [0] * (len(started) - 1)
        verdict = json.loads(await proxy.run("mcp-bridge", "audit", "verify", "--json"))
        assert verdict["clean"], verdict["faults"]
