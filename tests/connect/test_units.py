"""Servers by url as units of systemd: their secret, their sandbox, and what the kernel lets through.

The remote end stands outside of the container, at a public and at a private address.
"""

import json
import re
import shlex

import pytest

from lab import recipe
from support.authority import Authority
from support.client import error_of
from support.outside import PRIVATE, PUBLIC
from support.product import SERVERS, installed_product
from support.remote_outside import RemoteOutside

pytestmark = pytest.mark.lab

NAME = "far.example.com"
SECRET = "sesame-of-the-far-end-4711"
MOST_EXPOSURE = 1.3
CA = f"{SERVERS}/ca.pem"
BEARER = {"Authorization": {"credential": "far-key", "prefix": "Bearer "}}
# Whatever of the container a secret could have been left in, but where it has to be.
PLACES = "/etc/systemd /etc/mcp-bridge /var/lib/mcp-bridge /run/mcp-bridge /run/systemd/system"


@pytest.fixture(scope="module", params=recipe.SUITES)
def outside(request, lab, tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("authority"))
    product = installed_product(lab, request.param, f"remote-{request.param}")
    product.container.copy(authority.file, CA)
    product.container.check("mcp-bridge", "secret", "set", "far-key", stdin=SECRET)
    with RemoteOutside(product, authority.server(NAME)) as made:
        yield made
    product.container.down()


@pytest.fixture
def product(outside):
    outside.say({NAME: [[PUBLIC]]})
    outside.requests.clear()
    return outside.product


def far(name, **keys):
    return {"name": name, "url": f"https://{NAME}/mcp", **keys}


def trusting(product, name, more=""):
    """Have its program trust the test's authority, which is not in the container's store."""
    folder = f"/etc/systemd/system/autobot-mcp-bridge@{name}.service.d"
    product.container.check("mkdir", "-p", folder)
    variable = f"Environment=MCP_BRIDGE_ENV_SSL_CERT_FILE={CA}"
    product.write(f"{folder}/90-test.conf", f"[Service]\n{variable}\n{more}")
    product.container.check("systemctl", "daemon-reload")


async def test_the_secret_reaches_the_remote_end_and_nobody_else(outside, product):
    await product.serve(far("secret", headers=BEARER))
    trusting(product, "secret")
    async with product.session("secret") as client:
        assert await client.tools() == ["where"]
        assert await client.text("where") == f"reached {PUBLIC}"
        sent = {request.headers.get("authorization") for request in outside.requests}
        assert sent == {f"Bearer {SECRET}"}

        found = product.container.run("grep", "-rlF", SECRET, *PLACES.split())
        assert found.out == ""
        shown = product.container.check("systemctl", "show", "autobot-mcp-bridge@secret.service")
        assert SECRET not in shown
        processes = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'"
        said = product.container.run("sh", "-c", processes).out
        assert "autobot_mcp_bridge.upstream" in said, "the search would have found it"
        assert SECRET not in said
        assert SECRET not in json.dumps(product.entries())


async def test_its_unit_is_as_little_exposed_as_any_with_the_internet(product, record_property):
    await product.serve(far("exposed"))
    said = product.container.run(
        "systemd-analyze", "security", "--no-pager", "autobot-mcp-bridge@exposed.service"
    ).out
    found = re.search(r"Overall exposure level for \S+: (\d+\.\d)", said)
    assert found is not None, said
    record_property("exposure", float(found[1]))

    assert float(found[1]) <= MOST_EXPOSURE


async def test_a_name_that_leads_to_a_private_address_is_refused_by_the_program(outside, product):
    outside.say({NAME: [[PRIVATE]]})
    await product.serve(far("private"))
    trusting(product, "private")
    assert f"leads to {PRIVATE}" in await refusal(product, "private", 78)
    assert outside.requests == []
    assert "exited with status 78" in product.cli("status", "private")


async def test_a_private_address_is_refused_by_the_kernel_where_the_program_lets_it_through(
    outside, product
):
    outside.say({NAME: [[PRIVATE]]})
    await product.serve(far("kernel"))
    folder = "/etc/systemd/system/autobot-mcp-bridge@kernel.service.d"
    rendered = product.container.check("cat", f"{folder}/50-mcp-bridge.conf")
    (start,) = re.findall(r"^ExecStart=:.+$", rendered, re.MULTILINE)
    lets_through = f"ExecStart=\n{start} --allow {shlex.quote(PRIVATE)}\n"
    trusting(product, "kernel", lets_through)
    # Its packets are dropped.
    assert "no connection within 10 s" in await refusal(product, "kernel", 69)
    assert outside.requests == []
    trusting(product, "kernel", f"{lets_through}IPAddressAllow={PRIVATE}\n")
    async with product.session("kernel") as client:
        assert await client.text("where") == f"reached {PRIVATE}"


async def test_a_private_address_that_is_listed_is_reached(outside, product):
    outside.say({NAME: [[PRIVATE]]})
    await product.serve(far("listed", network={"mode": "list", "allow": [PRIVATE]}))
    trusting(product, "listed")
    async with product.session("listed") as client:
        assert await client.text("where") == f"reached {PRIVATE}"


async def test_with_names_it_goes_through_the_egress_proxy(outside, product):
    await product.serve(far("named", network={"mode": "names", "allow": [NAME]}))
    trusting(product, "named")
    async with product.session("named") as client:
        assert await client.text("where") == f"reached {PUBLIC}"
    assert outside.asked[0] == NAME

    outside.say({NAME: [[PRIVATE]]})
    outside.requests.clear()
    product.container.check("systemctl", "stop", "mcp-bridge@named.service")
    product.container.check("systemctl", "start", "mcp-bridge@named.service")
    assert "egress proxy refuses" in await refusal(product, "named", 78)
    assert outside.requests == []


async def test_systemctl_starts_and_stops_it_like_every_other(product):
    await product.serve(far("alias"))
    trusting(product, "alias")
    product.container.check("systemctl", "start", "mcp-bridge@alias.service")
    async with product.session("alias") as client:
        assert await client.text("where") == f"reached {PUBLIC}"
    product.container.check("systemctl", "stop", "mcp-bridge@alias.service")
    async with product.modern("alias") as client:
        refused = error_of(await client.call("where", {}))
        assert refused["data"]["code"] == "stopped_by_operator"


async def refusal(product, name, status):
    """What a server that does not start has said, and its caller is told the status of."""
    async with product.modern(name) as client:
        failed = error_of(await client.call("where", {}))
    assert failed["data"]["death"]["status"] == status
    return "\n".join(product.logs("-t", f"mcp-bridge@{name}"))
