"""Network mode names in configuration, drop-in and the egress proxy's file."""

import pytest

from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units import render
from autobot_mcp_bridge.units.sandbox import names
from support.configured import loaded_from, places_in, told

ARGV = ("/usr/bin/python3", "/opt/server.py")


def spec_of(*allow, **keys):
    network = {"mode": "names", "allow": allow or ("api.example.com",)}
    return ServerSpec.model_validate({"name": "x", "command": ARGV, "network": network, **keys})


def lines_of(spec):
    return render.drop_in(spec, Command(spec.command)).splitlines()


def test_the_unit_shares_a_network_with_the_egress_proxys_socket_and_has_no_other():
    lines = lines_of(spec_of())

    for setting in ("Wants", "After", "JoinsNamespaceOf"):
        assert f"{setting}=mcp-bridge-egress@x.socket" in lines
    for line in ("PrivateNetwork=yes", "IPAddressAllow=localhost"):
        assert line in lines
    assert not any("api.example.com" in line for line in lines)


@pytest.mark.parametrize("profile", ["npx", "uvx"])
def test_a_profile_with_the_network_has_none_beside_the_listed_names(profile):
    lines = lines_of(spec_of(command=(f"/usr/bin/{profile}", "x"), profile=profile))

    assert "PrivateNetwork=yes" in lines
    assert [line for line in lines if "IPAddress" in line] == ["IPAddressAllow=localhost"]


def test_programs_are_told_of_the_proxy_unless_the_definition_says_otherwise():
    text = "\n".join(lines_of(spec_of(env={"NO_PROXY": "*"})))

    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
        assert f'"MCP_BRIDGE_ENV_{name}=http://127.0.0.1:3128"' in text
    assert '"MCP_BRIDGE_ENV_NODE_USE_ENV_PROXY=1"' in text
    assert '"MCP_BRIDGE_ENV_NO_PROXY=*"' in text


def test_without_the_mode_nothing_of_it_is_there():
    spec = ServerSpec.model_validate({"name": "x", "command": ARGV})

    assert "egress" not in "\n".join(lines_of(spec))
    assert names.variables(spec) == {}
    assert not names.has_names(spec)


def test_the_egress_proxy_is_told_of_the_enabled_servers_of_the_mode():
    others = (
        ServerSpec.model_validate({"name": "other", "command": ARGV}),
        spec_of(name="off", enabled=False),
    )

    assert names.allowed([spec_of("*.example.org"), *others]) == {"x": ("*.example.org",)}


def test_another_list_needs_no_new_process_and_another_mode_does():
    views = [
        spec.process_view(units=True)
        for spec in (
            spec_of("a.example.com"),
            spec_of("b.example.com"),
            spec_of(network={"mode": "none"}),
        )
    ]

    assert views[0] == views[1] != views[2]


def test_each_entry_that_is_none_is_told_with_its_place(tmp_path):
    allow = ["api.example.com", "192.175.48.1", "*", "a.example.com:0"]
    server = {"name": "x", "command": ARGV, "network": {"mode": "names", "allow": allow}}
    found = told(loaded_from(places_in(tmp_path), server))

    assert {*found} == {f"$.servers[0].network.allow[{index}]" for index in (1, 2, 3)}
    assert all("HOST or HOST:PORT" in clause for clause in found.values())
