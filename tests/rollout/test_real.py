"""Servers from PyPI and npm, through an inventory, from bare hosts to calls that are answered."""

import json
import socket

import pytest

from lab import lent, recipe
from rollout import hosts
from rollout.playbooks import BIN, Rollout
from rules.tree import ROOT
from support.bridge import new_token
from support.client import Session
from support.containers import properties
from support.product import digest_of

pytestmark = [pytest.mark.lab, pytest.mark.network]

NAMES = ("everything", "time")  # of examples/servers.json: one of npm, one of PyPI


def free_ports(count):
    """Ports of this machine's loopback, which the hosts share: they have its network."""
    made = [socket.create_server((hosts.LOOPBACK, 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in made]
    for one in made:
        one.close()
    return ports


@pytest.fixture
def rollout(lab, need, tmp_path):
    need(str(BIN / "ansible-playbook"))
    registries = lent.registries()
    ports = iter(free_ports(3 * len(recipe.SUITES)))
    suites = {f"get-{suite}": suite for suite in recipe.SUITES}
    own = {
        name: {
            "ansible_host": hosts.LOOPBACK,
            "ansible_port": next(ports),
            "ansible_ssh_executable": "ssh",
            "mcp_bridge_host_environment": registries,
            "mcp_bridge_host_config": {
                "listen": {"port": next(ports)},
                "operator": {"port": next(ports)},
                "environment": {"pass": [*registries]},
            },
        }
        for name in suites
    }
    made = Rollout(lab, tmp_path, suites, own)
    containers = []
    try:
        for name, suite in suites.items():
            containers.append(hosts.up_online(lab, name, suite, own[name]["ansible_port"]))
        yield made, containers
    finally:
        for container in containers:
            container.down()


async def test_servers_of_npm_and_pypi_are_installed_and_called_by_one_run(rollout):
    made, containers = rollout
    servers = json.loads((ROOT / "examples/servers.json").read_text(encoding="utf-8"))["servers"]
    calls = json.loads((ROOT / "examples/calls.json").read_text(encoding="utf-8"))
    token = new_token()
    chosen = [
        {**server, "tokens_sha256": [digest_of(token)]}
        for server in servers
        if server["name"] in NAMES
    ]
    made.run("site.yml", mcp_bridge_servers_definitions=chosen).checked()

    for name, container in zip(made.suites, containers, strict=True):
        port = made.own[name]["mcp_bridge_host_config"]["listen"]["port"]
        for server in NAMES:
            url = f"http://{hosts.LOOPBACK}:{port}/t/default/s/{server}/mcp"
            async with Session(url, token) as client:
                call = calls[server]
                answer = await client.call(call["tool"], call["arguments"], within=30.0)
            assert not answer["result"].get("isError"), answer
            unit = f"autobot-mcp-bridge@{server}.service"
            shown = properties(container, unit, "ActiveState", "PrivateNetwork", "DynamicUser")
            wanted = {"ActiveState": "active", "PrivateNetwork": "yes", "DynamicUser": "yes"}
            assert shown == wanted
    again = made.run("site.yml", mcp_bridge_servers_definitions=chosen).checked()
    assert set(again.changed.values()) == {0}
