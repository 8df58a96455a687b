"""The bundle of a host on which secrets are everywhere has none of them, and what it is for."""

import asyncio
import json
import re
from collections.abc import Iterator

import pytest

from lab import recipe
from lab.places import Lab
from support.installed import SERVERS
from support.product import Product, installed_product

pytestmark = pytest.mark.lab

ENV, PLAIN, ENCRYPTED, ARGUMENT, HEADER = (
    "sentinel one of the environment",
    "sentinel-two-of-a-credential",
    "sentinel-three-of-an-encrypted-one",
    "sentinel-four-of-a-command",
    "sentinel-five-of-a-header",
)
MARKER = "a harmless marker of the server"
# Says all that it knows on stderr, as a server does that logs its configuration.
TELLS = f"""
import os, sys
names = ("LICENCE", "PLAIN", "LOCKED")
print("{MARKER}", *(os.environ[name] for name in names), sys.argv[2:], file=sys.stderr)
print("Authorization: Basic {HEADER}", file=sys.stderr, flush=True)
sys.argv[1:] = ["healthy"]
exec(open("{SERVERS}/broken.py").read())
"""
UNPACKED = "/tmp/unpacked"


@pytest.fixture(scope="module", params=recipe.SUITES)
def host(request: pytest.FixtureRequest, lab: Lab) -> Iterator[Product]:
    made = installed_product(lab, request.param, f"support-{request.param[:4]}")
    yield made
    made.container.down()


@pytest.fixture(scope="module")
def token(host):
    """A host with a server that has been called; the token."""
    plant(host)
    return host.cli("token", "new", "tells", "--write-header").strip()


def plant(host):
    check = host.container.check
    check("sh", "-c", f"mkdir -p /etc/credstore; printf %s {PLAIN} > /etc/credstore/plain")
    encrypt = "systemd-creds encrypt --with-key=host --name= - "
    folder = "/etc/mcp-bridge/credstore.encrypted"
    check("sh", "-c", f"printf %s {ENCRYPTED} | {encrypt} {folder}/locked 2>/dev/null")
    host.write("/opt/tells.py", TELLS)
    server = {
        "name": "tells",
        "command": ["/usr/bin/python3", "/opt/tells.py", "--token", ARGUMENT],
        "env": {"LICENCE": ENV, "LOG_LEVEL": "harmless-level"},
        "credentials": {"PLAIN": "plain", "LOCKED": "locked"},
    }
    host.write_servers(server)
    check("mcp-bridge", "apply")


@pytest.fixture(scope="module")
def bundle(host, token):
    """Name to text of each file in a bundle, and how it was made."""
    asyncio.run(called(host))
    check = host.container.check
    check("rm", "-rf", UNPACKED, "/root/bundle.tar.gz")
    check("mcp-bridge", "support", "--output", "/root/bundle.tar.gz", timeout=180.0)
    check("sh", "-c", f"mkdir {UNPACKED}; tar -xzf /root/bundle.tar.gz -C {UNPACKED} --strip 1")
    names = check("sh", "-c", f"cd {UNPACKED} && find . -type f -printf '%P\\n'").splitlines()
    return {name: check("cat", f"{UNPACKED}/{name}") for name in names}


async def called(host):
    async with host.modern("tells") as client:
        assert await client.text("one", within=20.0) == "served"


def test_no_secret_is_in_it(host, token, bundle):
    secrets = (ENV, PLAIN, ENCRYPTED, ARGUMENT, HEADER, token)
    raw = host.container.check("journalctl", "--no-pager", "--output=cat", "MCP_INSTANCE=tells")
    assert [secret for secret in secrets[:-1] if secret not in raw] == []

    hits = [(name, secret) for name, text in bundle.items() for secret in secrets if secret in text]

    assert hits == []
    assert not re.search(r"[0-9a-f]{64}", "\n".join(bundle.values()))


def test_what_it_is_for_is_in_it(bundle):
    assert MARKER in bundle["journal/servers.txt"]
    assert "harmless-level" in bundle["config/servers.json"]
    assert json.loads(bundle["state/accepted.json"])["servers"][0]["spec"]["name"] == "tells"
    assert json.loads(bundle["check.json"])["ok"] is True
    assert json.loads(bundle["list.json"])["servers"][0]["name"] == "tells"
    assert "mcp_bridge_" in bundle["metrics.txt"]
    assert "Id=autobot-mcp-bridge@tells.service" in bundle["systemctl/show.txt"]
    drop_in = "units/etc/systemd/system/autobot-mcp-bridge@tells.service.d/50-mcp-bridge.conf"
    assert "MemoryMax=" in bundle[drop_in]
    assert "systemd 25" in bundle["versions.txt"]


def test_the_manifest_names_every_file_and_why_one_is_not_there(host, bundle):
    manifest = json.loads(bundle["manifest.json"])
    there = {entry["file"] for entry in manifest["files"] if "left_out" not in entry}
    away = {entry["file"]: entry["left_out"] for entry in manifest["files"] if "left_out" in entry}

    assert there == bundle.keys() - {"manifest.json"}
    assert away["config/host.toml"] == "FileNotFoundError: No such file or directory"
    mode = host.container.check("stat", "--format=%a %U", "/root/bundle.tar.gz")
    assert mode == "600 root\n"


def test_without_a_proxy_the_bundle_is_written_nevertheless(host, bundle):
    units = ("mcp-bridge-proxy.service", "mcp-bridge-control.socket", "mcp-bridge-operator.socket")
    host.container.check("systemctl", "stop", *units)
    done = host.container.run(
        "mcp-bridge", "support", "--output", "/root/second.tar.gz", timeout=180.0
    )

    assert (done.status, done.out) == (0, "/root/second.tar.gz\n")
    assert "metrics.txt" in done.err
