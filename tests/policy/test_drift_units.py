"""Changed tools on a host with systemd: the proxy remembers, root accepts, apply forgets."""

import json

import pytest

from lab import recipe
from support import product
from support.bridge import new_token
from support.client import code_of
from support.product import digest_of, installed_product
from support.proxy_unit import faultless
from support.waiting import eventually

pytestmark = pytest.mark.lab
TOKEN = new_token()
DIRECTORY = "/var/lib/mcp-bridge/tools.d"


@pytest.fixture(scope="module", params=recipe.SUITES)
def proxy(request, lab):
    yield from faultless(installed_product(lab, request.param, f"drift-{request.param}"))


def server(*tools):
    """One that has these tools besides its own; others are another definition of it."""
    found = product.echo("files", tools={"drift": "hold"}, tokens_sha256=[digest_of(TOKEN)])
    return {**found, "command": [*found["command"], "--tools", ",".join(tools)]}


async def states(proxy):
    shown = json.loads(await proxy.run("mcp-bridge", "tools", "files", "--json"))
    return {tool["name"]: tool["state"] for tool in shown["tools"]}


async def held(client, name):
    answer = await client.call(name)
    return "error" in answer and code_of(answer) == "tool_held"


async def holds(proxy, *names):
    return (await proxy.run("ls", "-A", DIRECTORY)).split() == [*names]


async def test_tools_are_held_over_restarts_of_the_proxy_until_root_accepts_them(proxy):
    async with proxy.serving(server("one")):
        async with proxy.session("files", TOKEN) as client:
            assert "one" in await client.tools()
            assert await client.text("one") == "one"
            await proxy.product.serve(server("one", "two"))

            await eventually(lambda: held(client, "two"), within=30)
            assert "two" not in await client.tools()
            assert await client.text("one") == "one"
            await proxy.restart()
            assert await held(client, "two")
            await proxy.kill()
            assert await held(client, "two")
            assert (await states(proxy))["two"] == "new"

            told = await proxy.run("sh", "-c", "mcp-bridge tools accept files two 2>&1")
            assert "files: accepted: two" in told
            assert "two" in await client.tools()
            assert await client.text("two") == "two"
            await proxy.kill()
            assert await client.text("two") == "two"
            for path, mode in ((DIRECTORY, "700"), (f"{DIRECTORY}/files.json", "600")):
                found = await proxy.run("stat", "-c", "%a %U", path)
                assert found.split() == [mode, "mcp-bridge"]


async def test_what_was_accepted_goes_with_its_server(proxy):
    async with proxy.serving(server("one")):
        async with proxy.session("files", TOKEN) as client:
            await client.tools()

        await eventually(lambda: holds(proxy, "files.json"), within=20)
    await eventually(lambda: holds(proxy), within=20)
