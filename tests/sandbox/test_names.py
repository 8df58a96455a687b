"""Network mode names: what a server reaches by its listed names, and that nothing else is reached.

The hosts stand outside of the container (support/outside.py); a plain unit beside the server shows
that each of them could be reached.
"""

import re

import pytest

from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units import render
from lab import recipe
from support.authority import Authority
from support.containers import properties, reaches
from support.outside import PRIVATE, PUBLIC, Outside
from support.product import SERVERS, installed_product
from support.waiting import eventually

pytestmark = pytest.mark.lab

LISTED, OTHER, BELOW = "api.example.com", "other.example.com", "a.b.example.org"
ALLOW = (LISTED, "*.example.org:443")
CA = f"{SERVERS}/ca.pem"
EGRESS = "mcp-bridge-egress.service"
REACHED = f"reached {PUBLIC}"
LINK_LOCAL = "169.254.169.254"
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 20)"


@pytest.fixture(scope="module", params=recipe.SUITES)
def outside(request, lab, tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("authority"))
    product = installed_product(lab, request.param, f"names-{request.param}")
    product.container.copy(authority.file, CA)
    with Outside(product, authority.server(LISTED, OTHER, BELOW)) as made:
        yield made
    product.container.down()


@pytest.fixture
def product(outside):
    public = [[PUBLIC]]
    outside.say({LISTED: public, OTHER: public, BELOW: public})
    return outside.product


def reaching(name, *allow, **keys):
    return {
        "name": name,
        "command": ["/usr/bin/python3", f"{SERVERS}/reach.py"],
        "env": {"SSL_CERT_FILE": CA, "NODE_EXTRA_CA_CERTS": CA},
        "profile": "node",
        "network": {"mode": "names", "allow": allow or ALLOW},
        **keys,
    }


def refused(product, name):
    """What the egress proxy has logged of a server's connections: causes and lines."""
    found = product.entries("-t", "mcp-bridge-egress", f"MCP_INSTANCE={name}")
    return [(entry["MCP_CAUSE"], entry["MESSAGE"]) for entry in found if "MCP_CAUSE" in entry]


async def test_python_and_node_reach_a_listed_host(product):
    await product.serve(reaching("reach"))
    async with product.session("reach") as client:
        for tool in ("get", "node"):
            assert await client.text(tool, url=f"https://{LISTED}/") == REACHED
            assert await client.text(tool, url=f"https://{BELOW}/") == REACHED
    assert refused(product, "reach") == []


@pytest.mark.parametrize(
    ("name", "tool", "arguments", "answer", "cause"),
    [
        ("unlisted", "get", {"url": f"https://{OTHER}/"}, "403", "not_listed"),
        ("unlisted-node", "node", {"url": f"https://{OTHER}/"}, "403", "not_listed"),
        ("port", "get", {"url": f"https://{LISTED}:8443/"}, "403", "not_listed"),
        ("address", "get", {"url": f"https://{PUBLIC}/"}, "403", "not_listed"),
        ("metadata", "get", {"url": f"https://{LINK_LOCAL}/"}, "403", "not_listed"),
        ("plain", "get", {"url": f"http://{LISTED}/"}, "405", "not_connect"),
        (
            *("sni", "tls", {"host": LISTED, "port": 443, "sni": OTHER}),
            *("UNRECOGNIZED_NAME", "other_server_name"),
        ),
    ],
)
async def test_what_is_not_listed_is_refused_and_logged_with_the_servers_name(
    outside, product, name, tool, arguments, answer, cause
):
    await product.serve(reaching(name))
    async with product.session(name) as client:
        assert answer in await client.text(tool, **arguments)
        # Asked in the right way, the same host answers.
        assert await client.text("tls", host=LISTED, port=443, sni=LISTED) == "TLSv1.3"

    ((found, line),) = refused(product, name)
    assert found == cause
    assert line.startswith(f"{name}: refused")
    assert OTHER not in outside.asked  # no name of a server's choice is looked up


@pytest.mark.parametrize("address", [PRIVATE, LINK_LOCAL, "127.0.0.1"])
async def test_a_listed_name_with_an_answer_that_is_not_public_is_refused(
    outside, product, address
):
    outside.say({LISTED: [[address]]})
    name = f"answer-{address.replace('.', '-')}"
    await product.serve(reaching(name))
    async with product.session(name) as client:
        assert "403" in await client.text("get", url=f"https://{LISTED}/")

    ((cause, line),) = refused(product, name)
    assert cause == "not_public"
    assert address in line
    # It is there for a unit that has the network.
    if address == PRIVATE:
        plain(product, PRIVATE, 443)


async def test_a_name_that_is_rebound_reaches_what_was_checked_and_then_nothing(outside, product):
    outside.say({LISTED: [[PUBLIC], [PRIVATE]]})
    await product.serve(reaching("rebinding"))
    async with product.session("rebinding") as client:
        assert await client.text("get", url=f"https://{LISTED}/") == REACHED
        assert outside.asked == [LISTED]
        assert "403" in await client.text("get", url=f"https://{LISTED}/")

    assert [cause for cause, _ in refused(product, "rebinding")] == ["not_public"]


async def test_there_is_no_other_way_out(product):
    await product.serve(reaching("direct"))
    async with product.session("direct") as client:
        for address, port in ((PUBLIC, 443), (PRIVATE, 443), (LINK_LOCAL, 80)):
            said = await client.text("direct", address=address, port=port)
            assert "Network is unreachable" in said or "Operation not permitted" in said
        # Its loopback is its own: neither the proxy's port nor the name server is there.
        for port in (8765, 8766, 53):
            said = await client.text("direct", address="127.0.0.1", port=port)
            assert said.startswith("ConnectionRefusedError")
    for address, port in ((PUBLIC, 443), (PRIVATE, 443), ("127.0.0.1", 8765)):
        plain(product, address, port)


def plain(product, address, port):
    words = ("systemd-run", "--quiet", "--pipe", "--wait", "--", "/usr/bin/python3", "-c", CONNECT)
    product.container.check(*words, address, str(port))


async def test_each_server_has_its_own_list_and_its_own_loopback(product):
    await product.serve(reaching("one", LISTED), reaching("two", OTHER))
    async with product.session("one") as one, product.session("two") as two:
        assert await one.text("get", url=f"https://{LISTED}/") == REACHED
        assert await two.text("get", url=f"https://{OTHER}/") == REACHED
        assert "403" in await one.text("get", url=f"https://{OTHER}/")
        assert "403" in await two.text("get", url=f"https://{LISTED}/")

    assert [line for _, line in refused(product, "one")] != []
    assert all(line.startswith("two: ") for _, line in refused(product, "two"))


async def test_without_the_egress_proxy_nothing_is_reached_and_with_it_again(product):
    await product.serve(reaching("closed"))
    async with product.session("closed") as client:
        assert await client.text("get", url=f"https://{LISTED}/") == REACHED
        pid = process(product, "closed")
        product.container.check("systemctl", "stop", EGRESS)
        assert "503" in await client.text("get", url=f"https://{LISTED}/")
        assert "503" in await client.text("get", url=f"https://{LISTED}/")
        assert properties(product.container, EGRESS, "ActiveState") == {"ActiveState": "inactive"}

        product.container.check("systemctl", "start", EGRESS)
        assert await client.text("get", url=f"https://{LISTED}/") == REACHED
        assert process(product, "closed") == pid


async def test_after_a_kill_of_the_egress_proxy_the_next_connection_works(product):
    await product.serve(reaching("killed"))
    async with product.session("killed") as client:
        assert await client.text("get", url=f"https://{LISTED}/") == REACHED
        pid = process(product, "killed")
        for _ in range(3):
            product.container.check("systemctl", "kill", "-s", "KILL", EGRESS)
            assert await client.text("get", url=f"https://{LISTED}/") == REACHED
        assert process(product, "killed") == pid


async def test_a_server_that_starts_again_however_it_ended_reaches_its_hosts(product):
    await product.serve(reaching("again"))
    unit = "autobot-mcp-bridge@again.service"
    async with product.session("again") as client:
        assert await client.text("get", url=f"https://{LISTED}/") == REACHED
        for _ in range(2):
            product.container.check("systemctl", "kill", "-s", "KILL", unit)
            await reaches(product.container, unit, ActiveState="failed")
            assert await client.text("get", url=f"https://{LISTED}/") == REACHED
        product.cli("stop", "again")
        product.cli("start", "again")
        assert await client.text("get", url=f"https://{LISTED}/") == REACHED


def process(product, name):
    unit = f"autobot-mcp-bridge@{name}.service"
    return properties(product.container, unit, "MainPID")["MainPID"]


async def test_another_list_is_in_force_without_a_new_process(product):
    await product.serve(reaching("listing", LISTED))
    async with product.session("listing") as client:
        assert await client.text("get", url=f"https://{LISTED}/") == REACHED
        pid = process(product, "listing")
        await product.serve(reaching("listing", OTHER))

        async def is_in_force():
            return "403" in await client.text("get", url=f"https://{LISTED}/")

        await eventually(is_in_force)
        assert await client.text("get", url=f"https://{OTHER}/") == REACHED
        assert process(product, "listing") == pid


async def test_with_the_last_such_server_its_units_and_the_egress_proxy_end(product):
    await product.serve(reaching("last"))
    async with product.session("last") as client:
        assert await client.text("get", url=f"https://{LISTED}/") == REACHED
        assert set(running(product)) == {
            *("mcp-bridge-egress.service", "mcp-bridge-egress@last.service"),
            "mcp-bridge-egress@last.socket",
        }
        await product.serve(reaching("last", network={"mode": "none"}))

        async def has_none():
            said = await client.text("direct", address=PUBLIC, port=443)
            return "Address family not supported" in said

        await eventually(has_none)
        await eventually(lambda: running(product) == [])


def running(product):
    words = ("--plain", "--no-legend", "--state=active")
    listed = product.container.check("systemctl", "list-units", *words, "mcp-bridge-egress*")
    return [line.split()[0] for line in listed.splitlines()]


async def test_what_is_let_through_and_what_was_refused_is_told(product):
    await product.serve(reaching("told", LISTED, "*.Example.org:8443"))
    async with product.session("told") as client:
        assert await client.text("get", url=f"https://{LISTED}/") == REACHED
        assert "403" in await client.text("get", url=f"https://{OTHER}/")

    said = product.container.run("mcp-bridge", "check").checked().err
    assert f"told: network names: {LISTED}:443, *.example.org:8443" in said

    async def are_told():
        text = await product.metrics()
        return (
            'mcp_bridge_egress_connections_total{server="told"} 1.0' in text
            and 'mcp_bridge_egress_refusals_total{reason="not_listed",server="told"} 1.0' in text
        )

    await eventually(are_told)


def test_the_egress_proxys_user_reads_its_own_list_and_nothing_else_of_the_product(product):
    def read(path):
        words = (
            "setpriv",
            "--reuid=mcp-bridge-egress",
            "--regid=mcp-bridge-egress",
            "--init-groups",
        )
        return product.container.run(*words, "cat", path).status == 0

    assert read("/var/lib/mcp-bridge/egress.json")
    assert not read("/var/lib/mcp-bridge/accepted.json")
    groups = product.container.check("id", "-Gn", "mcp-bridge-egress")
    assert groups.split() == ["mcp-bridge-egress"]


def test_the_exposure_is_that_of_a_server_without_network(product, record_property):
    spec = ServerSpec.model_validate(reaching("exposed"))
    unit = "/run/exposure/autobot-mcp-bridge@exposed.service"
    text = product.container.check(
        "cat", "/usr/lib/systemd/system/autobot-mcp-bridge@.service"
    ) + render.drop_in(spec, Command(tuple(spec.command)))
    product.container.write(unit, text)

    said = product.container.run(
        *("systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=5", unit)
    )
    (figure,) = re.findall(r"exposure level for \S+: ([0-9.]+)", said.out)
    record_property("exposure", float(figure))
    assert said.status == 0, said.out
