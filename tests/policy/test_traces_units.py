"""Traces of a proxy that is a unit of systemd: it reaches a collector, whose key is a credential."""

import asyncio

import pytest

from lab import recipe
from support import product
from support.bridge import new_token
from support.collector import Collector
from support.product import PROXY, digest_of, installed_product
from support.proxy_unit import faultless
from support.waiting import eventually

pytestmark = pytest.mark.lab
TOKEN = new_token()
KEY = "K3y-0f-the-collector"
STORE = "/etc/mcp-bridge/credstore.encrypted/otlp-headers"
DROP_IN = f"[Service]\nLoadCredentialEncrypted=otlp-headers:{STORE}\n"


@pytest.fixture(scope="module", params=recipe.SUITES)
def proxy(request, lab):
    yield from faultless(installed_product(lab, request.param, f"traces-{request.param}"))


async def test_spans_leave_the_unit_with_a_key_that_stands_nowhere(proxy):
    """As docs/OPERATE.md says; a restart of the proxy sends what waits, and goes on."""
    host = proxy.product
    async with Collector(host.listener()) as collector:
        name = f"/etc/systemd/system/{PROXY}.d/90-otlp.conf"
        await asyncio.to_thread(
            lambda: proxy.container.check(
                "mcp-bridge", "secret", "set", "otlp-headers", stdin=f"x-key={KEY}"
            )
        )
        await asyncio.to_thread(proxy.container.write, name, DROP_IN)
        await proxy.run("systemctl", "daemon-reload")
        text = f'[tracing]\nendpoint = "{collector.url}"\n'
        await asyncio.to_thread(host.write, "/etc/mcp-bridge/host.toml", text)
        await proxy.run("mcp-bridge", "apply")
        await proxy.restart()
        echo = product.echo("files", tokens_sha256=[digest_of(TOKEN)])
        async with proxy.serving(echo):
            async with proxy.session("files", TOKEN) as client:
                await client.text("counter")
                spans = await collector.of("tools/call counter")
                assert spans["client"].parent == spans["server"].id
                assert collector.headers[-1]["x-key"] == KEY
                await client.text("pid")
                await proxy.restart()
                assert "client" in await collector.of("tools/call pid")
                await client.text("counter")
                await eventually(
                    lambda: [s.name for s in collector.spans].count("tools/call counter") == 4
                )
        shown = await proxy.run("systemctl", "show", PROXY)
        assert KEY not in shown and KEY not in proxy.log()
