"""A server whose unit is more exposed than its definition allows is not put to use."""

import pytest

from autobot_mcp_bridge.config.errors import LEFT_OUT
from lab import recipe
from support.client import code_of
from support.product import echo, installed_product

pytestmark = pytest.mark.lab

OWN = "/etc/systemd/system/autobot-mcp-bridge@judged.service.d"


@pytest.fixture(scope="module", params=recipe.SUITES)
def host(request, lab):
    made = installed_product(lab, request.param, f"judge-{request.param}"[:15])
    yield made
    made.container.down()


async def test_figure_and_bar_are_told_and_what_was_before_stays(host):
    await host.serve(echo("judged", max_exposure=0.2))
    before = host.accepted()

    host.write_servers(
        echo("judged", max_exposure=0.2, network={"mode": "internet"}), echo("beside")
    )
    left = host.container.run("mcp-bridge", "apply")
    assert left.status == LEFT_OUT
    assert "judged: $.max_exposure: its unit has 1 (systemd-analyze security" in left.out
    assert "allowed is at most 0.2" in left.out
    assert "allowed is at most 0.2" in host.container.run("mcp-bridge", "check").out
    found = host.accepted()
    assert found["judged"].pop("refused").startswith("$.max_exposure: its unit has 1 ")
    assert found["judged"] == before["judged"]
    assert found["beside"]["state"] is None

    await host.serve(echo("judged", max_exposure=1.0, network={"mode": "internet"}))
    async with host.session("judged") as client:
        assert await client.text("echo", text="hello") == "hello"


async def test_check_says_what_a_network_mode_lets_through(host):
    host.container.write("/etc/resolv.conf", "nameserver 10.88.77.1\nnameserver 127.0.0.1\n")
    await host.serve(
        echo("out", network={"mode": "internet"}),
        echo("some", network={"mode": "list", "allow": ["192.0.2.0/24"]}),
        echo("judged"),
    )
    said = host.container.run("mcp-bridge", "check").err

    assert "out: network internet: public addresses, no private" in said
    assert "some: network list: 192.0.2.0/24; resolvers 10.88.77.1; not resolver 127.0.0.1" in said
    assert "judged: network" not in said


async def test_what_an_administrator_has_added_counts(host):
    await host.serve(echo("judged", max_exposure=0.2))
    host.container.write(f"{OWN}/90-own.conf", "[Service]\nNoNewPrivileges=no\nPrivateUsers=no\n")
    try:
        left = host.container.run("mcp-bridge", "apply")
        assert left.status == LEFT_OUT
        assert "judged: $.max_exposure: its unit has 0." in left.out
        # What was in force would be started with it, too.
        async with host.modern("judged") as client:
            assert code_of(await client.call("echo", {"text": "x"})) == "definition_refused"
    finally:
        host.container.check("rm", f"{OWN}/90-own.conf")
    assert host.container.run("mcp-bridge", "apply").status == 0
    async with host.session("judged") as client:
        assert await client.text("echo", text="again") == "again"
