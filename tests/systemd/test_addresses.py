"""host.toml says where the proxy listens and what it allows: apply puts it in force."""

import asyncio

import pytest

from support.client import Session
from support.containers import properties, reaches
from support.product import echo, url_of
from support.waiting import eventually

pytestmark = pytest.mark.lab

APPLY = "mcp-bridge-apply.service"
DROP_IN = "/etc/systemd/system/mcp-bridge-proxy.socket.d/50-mcp-bridge.conf"


@pytest.fixture(autouse=True)
async def served(product):
    await product.serve(echo("moves"))
    yield
    product.write("/etc/mcp-bridge/host.toml", "")
    await listens(product, "127.0.0.1:8765")


def invocation(product, unit="autobot-mcp-bridge@moves.service"):
    return properties(product.container, unit, "InvocationID")["InvocationID"]


async def listens(product, address):
    """Wait until the clients' port is there, and the drop-in only where it is needed."""

    async def so():
        shown = await asyncio.to_thread(product.container.check, "ss", "-Hltn")
        there = product.container.run("test", "-e", DROP_IN).status == 0
        return f" {address} " in shown and there == (address != "127.0.0.1:8765")

    await eventually(so, within=30)


async def test_another_address_is_listened_on_and_no_server_and_no_session_ends(product):
    token = product.token("moves")
    async with product.session("moves", token) as client:
        assert await client.text("echo", text="here") == "here"
        before = invocation(product)

        product.write("/etc/mcp-bridge/host.toml", "[listen]\nport = 9765\n")
        await listens(product, "127.0.0.1:9765")

        moved = Session(url_of("moves").replace(":8765", ":9765"), token)
        moved.dial, moved.session = product.dial, client.session
        moved.version = client.version
        assert await moved.text("echo", text="there") == "there"
        await moved.drop()
        assert invocation(product) == before
        assert product.container.run("mcp-bridge", "status", "moves").status == 0

        product.write("/etc/mcp-bridge/host.toml", "")
        await listens(product, "127.0.0.1:8765")
        await client.drop()  # its connections were closed with the address
        assert await client.text("echo", text="back") == "back"
        assert invocation(product) == before


async def test_a_port_that_is_taken_is_refused_and_the_one_before_stays(product):
    token = product.token("moves")
    proxy = invocation(product, "mcp-bridge-proxy.service")
    with product.listener() as other:
        port = other.getsockname()[1]
        product.write("/etc/mcp-bridge/host.toml", f"[listen]\nport = {port}\n")
        await reaches(product.container, APPLY, ActiveState="failed", ExecMainStatus="65")
    said = product.logs("-t", "mcp-bridge-apply", "-n", "1")
    assert f"listen.port: {port}: another program listens" in said[0]
    assert invocation(product, "mcp-bridge-proxy.service") == proxy
    async with product.session("moves", token) as client:
        assert await client.text("echo", text="still") == "still"


async def test_our_own_port_can_be_widened_to_every_address_and_narrowed_again(product):
    token = product.token("moves")
    wide = '[listen]\naddress = "0.0.0.0"\nbeyond_loopback = true\n'
    product.write("/etc/mcp-bridge/host.toml", wide)
    await listens(product, "0.0.0.0:8765")
    async with product.session("moves", token) as client:
        assert await client.text("echo", text="wide") == "wide"
        assert await asyncio.to_thread(calls_by_hand, product, token) == "by hand"

        product.write("/etc/mcp-bridge/host.toml", "")
        await listens(product, "127.0.0.1:8765")
        await client.drop()
        assert await client.text("echo", text="narrow") == "narrow"


def calls_by_hand(product, token):
    words = ("mcp-bridge", "call", "moves", "echo", '{"text": "by hand"}')
    return product.container.check("env", f"MCP_BRIDGE_TOKEN={token}", *words).strip()


async def test_a_changed_setting_of_the_host_counts_at_once_and_ends_no_session(product):
    async with product.session("moves") as client:
        assert (await client.send(client.call_of("echo", {"text": "a"}))).status == 200
        origin = {"Origin": "https://desk.example"}
        refused = await client.send(client.call_of("echo", {"text": "a"}), headers=origin)
        assert refused.status == 403

        text = '[http]\nallowed_origins = ["https://desk.example"]\n'
        product.write("/etc/mcp-bridge/host.toml", text)

        async def let_in():
            message = client.call_of("echo", {"text": "b"})
            return (await client.send(message, headers=origin)).status == 200

        await eventually(let_in, within=30)


async def test_the_operators_port_belongs_to_systemd_too(product):
    shown = properties(product.container, "mcp-bridge-operator.socket", "ActiveState", "Triggers")
    assert shown == {"ActiveState": "active", "Triggers": "mcp-bridge-proxy.service"}
    assert "mcp_bridge" in await product.metrics()
