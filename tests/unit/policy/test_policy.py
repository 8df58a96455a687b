"""Hosts, origins, tools and methods."""

import hashlib

import pytest

from autobot_mcp_bridge.model.server import Tools
from autobot_mcp_bridge.policy.methods import HANDSHAKE_REQUESTS, allowed
from autobot_mcp_bridge.policy.origin import OriginRule
from autobot_mcp_bridge.policy.principals import Principal, TokenIndex, digest_of, token_of
from autobot_mcp_bridge.policy.tools import ToolRule


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "127.0.0.1:8765",
        "LOCALHOST:1",
        "[::1]:8765",
        "[::1]",
        "mcp.example",
        "mcp.example:443",
        "other.example:99",
    ],
)
def test_loopbacks_names_and_the_configured_ones_are_hosts(host):
    assert OriginRule(("mcp.example", "other.example:99"), ()).host_allowed(host)


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil",
        "other.example",
        "evil@localhost",
        "localhost:80:80",
    ],
)
def test_other_hosts_are_not(host):
    assert not OriginRule(("other.example:99",), ()).host_allowed(host)


@pytest.mark.parametrize(("origin", "good"), [("https://app.example", True), ("https://app.example/", True), ("http://localhost:6274", True), ("http://[::1]:1", True),
    ("https://evil.example", False), ("null", False), ("https://app.example.evil", False), ("file://localhost", False), ("http://[", False)])  # fmt: skip
def test_an_origin_is_configured_or_loopbacks(origin, good):
    assert OriginRule((), ("https://app.example",)).origin_allowed(origin) is good


@pytest.mark.parametrize("name", ["b", "A", " a", "a ", "a\u0000", "aa", "", None, 1, ["a"]])
def test_a_tool_is_allowed_by_exactly_its_name(name):
    assert not ToolRule(Tools(allow=("a",))).allows(name)


def test_deny_wins_and_listing_agrees_with_calling():
    rule = ToolRule(Tools(allow=("read_*", "list"), deny=("read_secret",)))
    names = ["read_a", "read_secret", "list", "lister", "write"]

    listed = rule.listed({"tools": [{"name": name} for name in names], "nextCursor": "c"})

    assert [tool["name"] for tool in listed["tools"]] == [
        name for name in names if rule.allows(name)
    ]
    assert [tool["name"] for tool in listed["tools"]] == ["read_a", "list"]
    assert listed["nextCursor"] == "c"


@pytest.mark.parametrize(
    "method",
    ["tools/callx", "sampling/createMessage", "server/discover", "Tools/call", "tools/call ", ""],
)
def test_a_method_of_neither_era_is_denied(method):
    assert not allowed(method, HANDSHAKE_REQUESTS, ("tasks/*",))


def test_a_token_counts_until_it_expires():
    now = [100.0]
    digest = hashlib.sha256(b"t").hexdigest()
    index = TokenIndex([Principal(digest, "a", expires=200.0)], lambda: now[0])

    assert index.find(digest) is not None
    now[0] = 200.0

    assert index.find(digest) is None


@pytest.mark.parametrize(
    "value", ["", "Bearer", "Bearer ", "Basic dXNlcg==", "Token x", "Bearer " + "x" * 9000]
)
def test_what_is_no_bearer_token_is_none(value):
    assert token_of(value) is None


def test_the_scheme_is_case_insensitive():
    assert token_of("bEARER t") == "t"
    assert digest_of("t") == hashlib.sha256(b"t").hexdigest()
