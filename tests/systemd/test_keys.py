"""API keys on a host with systemd: root makes them, the unprivileged proxy goes by them."""

import asyncio
import json

import pytest

from lab import recipe
from support import product
from support.product import installed_product
from support.proxy_unit import faultless
from support.waiting import eventually

pytestmark = pytest.mark.lab
FILES = "acme.web.files"
AGENT = ("--agent-id", "a1", "--agent-type", "coder", "--project", "web", "--json")


@pytest.fixture(scope="module", params=recipe.SUITES)
def proxy(request, lab):
    yield from faultless(installed_product(lab, request.param, f"keys-{request.param}"))


async def test_a_key_and_its_session_outlive_the_proxy_and_end_by_revocation(proxy):
    installed = proxy.product
    files = product.echo("files", tenant="acme", project="web")
    async with proxy.serving(files):
        made = json.loads(await asyncio.to_thread(installed.cli, "key", "new", "acme", *AGENT))
        async with proxy.session(FILES, made["key"]) as client:
            assert await client.text("counter") == "1"
            await proxy.restart()
            assert await client.text("counter") == "2"
            await proxy.kill()
            assert await client.text("counter") == "3"

            shown = json.loads(
                await asyncio.to_thread(installed.cli, "key", "list", "acme", "--json")
            )
            assert [key["used"] is not None for key in shown["keys"]] == [True]

            await asyncio.to_thread(installed.cli, "key", "revoke", "acme", made["id"])

            async def refused():
                return (await client.send(client.call_of("counter", {}))).status == 401

            await eventually(refused)


def test_root_writes_the_keys_and_the_proxy_their_last_use_only(proxy):
    at = "/var/lib/mcp-bridge"
    proxy.container.check("rm", "-rf", f"{at}/keys.d")  # what somebody has deleted is laid anew
    proxy.product.write_servers(product.echo("files", tenant="acme"))
    proxy.product.cli("apply")
    proxy.product.cli("key", "new", "acme", "--agent-id", "a1", "--agent-type", "coder")
    paths = (f"{at}/keys.d", f"{at}/keys.d/acme.json", f"{at}/used.d", f"{at}/used.d/keys.json")

    told = proxy.container.check("stat", "-c", "%a %U:%G", *paths).split("\n")

    assert told[:2] == ["2750 root:mcp-bridge", "640 root:mcp-bridge"]
    assert [line.split(":")[0] for line in told[2:4]] == ["700 mcp-bridge", "600 mcp-bridge"]
