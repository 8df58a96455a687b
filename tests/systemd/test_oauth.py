"""Access tokens at the installed proxy: its sandbox lets it judge them, a restart keeps its sessions."""

import json
import time

import pytest
from aiohttp import web

from lab import recipe
from support import product
from support.issuer import SigningKey
from support.product import installed_product
from support.proxy_unit import ProxyUnit
from support.waiting import eventually

pytestmark = pytest.mark.lab
PUBLIC = "https://mcp.example"


@pytest.fixture(scope="module", params=recipe.SUITES)
def proxy(request, lab):
    made = ProxyUnit(installed_product(lab, request.param, f"oauth-{request.param}"))
    yield made
    made.container.down()


class KeyServer:
    """An issuer's JWK set on the container's loopback."""

    def __init__(self, proxy, key):
        self._listener = proxy.product.listener()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._key = key
        self.up = True

    async def __aenter__(self):
        self._runner = web.ServerRunner(web.Server(self._answer))
        await self._runner.setup()
        await web.SockSite(self._runner, self._listener).start()
        return self

    async def __aexit__(self, *_):
        await self._runner.cleanup()

    async def _answer(self, request):
        if not self.up:
            return web.Response(status=503)
        return web.json_response({"keys": [self._key.public_jwk]})

    def host_toml(self):
        tables = {
            "http": {"public_url": PUBLIC},
            "oauth": {"issuer": self.url, "jwks_uri": f"{self.url}/keys"},
        }
        return "".join(
            f"[{name}]\n"
            + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
            for name, table in tables.items()
        )

    def token(self, path, **more):
        now = int(time.time())
        claims = {"iss": self.url, "sub": "alice", "aud": PUBLIC + path, "exp": now + 600, **more}
        return self._key.sign(claims)


@pytest.mark.requirement("F5")
async def test_an_access_token_and_its_session_outlive_the_proxy(proxy):
    async with KeyServer(proxy, SigningKey()) as issuer:
        proxy.product.write("/etc/mcp-bridge/host.toml", issuer.host_toml())
        async with proxy.serving(product.echo("files")):
            path = "/t/default/s/files/mcp"
            async with proxy.session("files", issuer.token(path + "x"), opened=False) as wrong:

                async def restarted():
                    """By apply, since host.toml has changed."""
                    response = await wrong.send(wrong.initialize_of())
                    assert response.status == 401
                    return "resource_metadata" in response.header("WWW-Authenticate")

                await eventually(restarted, within=20)
            async with proxy.session("files", issuer.token(path)) as client:
                assert await client.text("counter") == "1"
                await proxy.restart()
                client.token = issuer.token(path)
                assert await client.text("counter") == "2"
                issuer.up = False
                await proxy.restart()
                call = client.call_of("counter", {})
                assert (await client.send(call)).status == 503
                issuer.up = True

                async def answered():
                    return (await client.send(call)).status == 200

                await eventually(answered, within=20)
                assert await client.text("counter") == "4"
