"""The servers of examples/servers.json, from npm and PyPI, as units: installed, sandboxed, called."""

import ipaddress
import json
import socket
from urllib.parse import urlsplit

import pytest

from autobot_mcp_bridge.model.addresses import public
from autobot_mcp_bridge.units.packages.pip_settings import uv_environment
from lab import lent, recipe
from rules.tree import ROOT
from support.containers import properties
from support.made import node_binds, put_runners, uv_binds
from support.product import installed_product

pytestmark = [pytest.mark.lab, pytest.mark.network]

INSTALLED_WITHIN = 240.0  # seconds; the registries' pace, not ours


@pytest.fixture(scope="module", params=recipe.SUITES)
def online(request, lab, need):
    """The product in a container on this machine's network, on ports of its own."""
    name = f"real-{request.param}"[:15]
    binds = [*node_binds(need), *uv_binds(need)]
    product = installed_product(lab, request.param, name, binds, host_network=True)
    product.pass_to_installs(lent.registries())
    yield product
    product.container.down()


async def test_the_example_servers_are_installed_and_answer_in_the_sandbox(online, record_property):
    servers = json.loads((ROOT / "examples/servers.json").read_text(encoding="utf-8"))["servers"]
    calls = json.loads((ROOT / "examples/calls.json").read_text(encoding="utf-8"))
    online.write_servers(*servers)
    await online.applied(*(server["name"] for server in servers), within=INSTALLED_WITHIN)
    for server in servers:
        name = server["name"]
        async with online.session(name) as client:
            answer = await client.call(calls[name]["tool"], calls[name]["arguments"], within=30.0)
        assert not answer["result"].get("isError"), answer
        unit = f"autobot-mcp-bridge@{name}.service"
        shown = properties(online.container, unit, "ActiveState", "PrivateNetwork", "DynamicUser")
        assert shown == {"ActiveState": "active", "PrivateNetwork": "yes", "DynamicUser": "yes"}
    record_property("servers", len(servers))


@pytest.mark.parametrize("profile", ["npx", "uvx"])
async def test_npx_and_uvx_themselves_start_real_servers_in_their_weaker_sandbox(online, profile):
    put_runners(online.container)
    examples = json.loads((ROOT / "examples/servers.json").read_text(encoding="utf-8"))["servers"]
    calls = json.loads((ROOT / "examples/calls.json").read_text(encoding="utf-8"))
    chosen = next(server for server in examples if server["command"][0] == profile)
    call = calls[chosen["name"]]
    timeouts = {"start": f"{INSTALLED_WITHIN}s", "call": f"{INSTALLED_WITHIN}s"}
    live = {"name": f"live-{profile}", "profile": profile, "timeouts": timeouts}
    # A mirror is often at an address that is not the internet's.
    if (near := _not_public(lent.registries())) and "network" not in chosen:
        live["network"] = {"mode": "list", "allow": near}
    env = {**uv_environment({**lent.registries(), "HOME": "/root"}), **chosen.get("env", {})}
    env.pop("HOME")
    online.write_servers({**chosen, **live, "env": env})
    await online.applied(live["name"])

    async with online.modern(live["name"]) as client:
        answer = await client.call(call["tool"], call["arguments"], within=INSTALLED_WITHIN)
    assert "result" in answer, (answer, online.logs(f"MCP_INSTANCE={live['name']}")[-20:])
    assert not answer["result"].get("isError"), answer
    unit = f"autobot-mcp-bridge@{live['name']}.service"
    shown = properties(online.container, unit, "ActiveState", "PrivateNetwork", "DynamicUser")
    assert shown == {"ActiveState": "active", "PrivateNetwork": "no", "DynamicUser": "yes"}


def _not_public(variables):
    """Addresses of the registries that the mode internet does not let through."""
    hosts = {urlsplit(text).hostname for text in variables.values() if text.startswith("http")}
    found = {
        entry[4][0] for host in hosts if host for entry in socket.getaddrinfo(host, 443, type=1)
    }
    networks = [ipaddress.ip_network(text) for line in public() for text in line]
    return sorted(
        text
        for text in found
        if not any(ipaddress.ip_address(text) in network for network in networks)
    )
