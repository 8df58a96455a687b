"""What is said of a network mode, and which mode counts."""

import pytest

from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.sandbox import network
from autobot_mcp_bridge.units.sandbox.resolvers import Resolvers

RESOLVERS = Resolvers(("10.0.0.53",))


def spec(mode=None, *allow, profile=None):
    keys = {} if mode is None else {"network": {"mode": mode, "allow": allow}}
    return ServerSpec.model_validate(
        {"name": "a", "command": [profile or "x"], "profile": profile, **keys}
    )


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("loopback", "network loopback: a loopback interface of its own, and nothing beyond it"),
        ("list", "network list: 192.0.2.7, 10.0.0.0/8; resolvers 10.0.0.53"),
        ("internet", "network internet: public addresses, no private, link-local, metadata or "),
    ],
)
def test_each_mode_says_what_it_lets_through(mode, said):
    allow = ("192.0.2.7", "10.0.0.0/8") if mode == "list" else ()
    sentence = network.sentence(spec(mode, *allow), RESOLVERS)

    assert sentence.startswith(said)
    assert ("resolvers 10.0.0.53" in sentence) == (mode != "loopback")


def test_the_mode_without_a_network_says_nothing():
    assert network.sentence(spec("none"), RESOLVERS) is None


@pytest.mark.parametrize("profile", ["npx", "uvx"])
def test_npx_and_uvx_have_the_internet_unless_another_mode_is_asked_for(profile):
    assert network.mode_of(spec(profile=profile)) == "internet"
    assert network.mode_of(spec("list", "192.0.2.7", profile=profile)) == "list"
    assert network.mode_of(spec("none", profile=profile)) == "none"
    assert network.mode_of(spec(profile="node")) == "none"
