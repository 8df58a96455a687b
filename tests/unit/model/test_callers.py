"""URLs, paths and scopes of callers."""

import pytest

from autobot_mcp_bridge.model.names import ServerId, parse_path
from autobot_mcp_bridge.model.scopes import fill, is_template
from autobot_mcp_bridge.model.urls import is_base_url, is_safe_url


@pytest.mark.parametrize(
    "server",
    [ServerId("acme", "web", "files"), ServerId("default", None, "s"), ServerId("t", "p", "s")],
)
def test_the_path_of_a_server_names_it(server):
    assert parse_path(server.path) == server


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/t/acme/s/files",
        "/t/acme/s/files/mcp/",
        "/t/acme/p//s/files/mcp",
        "/t/ACME/s/files/mcp",
        "/t/acme/s/-/mcp",
        "/t/acme/s/socket/mcp",
        "/t/acme/s/files/mcp\n",
        f"/t/{'a' * 32}/p/{'b' * 32}/s/{'c' * 32}/mcp",
    ],
)
def test_a_path_that_no_server_can_have_names_none(path):
    assert parse_path(path) is None


def test_scopes_are_filled_with_the_servers_names():
    scopes = ("mcp:{tenant}", "{tenant}/{project}/{name}", "fixed")
    assert fill(scopes, ServerId("acme", "web", "files")) == ("mcp:acme", "acme/web/files", "fixed")
    assert fill(scopes, ServerId("acme", None, "files"))[1] == "acme/-/files"


@pytest.mark.parametrize(
    ("scope", "good"),
    [("mcp", True), ("{tenant}{name}", True), ("{host}", False), ("a}", False), ("{tenant", False)],
)
def test_only_names_of_a_server_stand_in_braces(scope, good):
    assert is_template(scope) is good


@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("https://id.example", True),
        ("https://id.example:8443/realms/a", True),
        ("http://127.0.0.1:3000", True),
        ("http://[::1]:3000/", True),
        ("http://localhost", True),
        ("http://id.example", False),
        ("http://localhost.example", False),
        ("https://u:p@id.example", False),
        ("https://id.example/#a", False),
        ("https://id.example/a b", False),
        ("https://id.example:x", False),
        ("https://", False),
        ("ftp://127.0.0.1", False),
        ("file:///etc/passwd", False),
        ("", False),
    ],
)
def test_keys_and_tokens_travel_by_https_or_not_at_all(url, good):
    assert is_safe_url(url) is good


@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("https://mcp.example", True),
        ("https://mcp.example:8443", True),
        ("http://127.0.0.1:8765", True),
        ("https://mcp.example/", False),
        ("https://mcp.example/a", False),
        ("https://mcp.example?", False),
        ("https://MCP.example", False),
        ("http://mcp.example", False),
    ],
)
def test_a_public_url_is_a_scheme_and_a_host(url, good):
    assert is_base_url(url) is good
