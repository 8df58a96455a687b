"""Entries of network.allow: which are taken, and what they cover."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.model.destinations import (
    Destination,
    is_covered,
    parse_authority,
    parse_entry,
)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("api.example.com", "api.example.com", 443),
        ("API.Example.COM:8443", "api.example.com", 8443),
        ("*.example.org", "*.example.org", 443),
        ("xn--bcher-kva.example", "xn--bcher-kva.example", 443),
        ("a-1.b2.example:1", "a-1.b2.example", 1),
    ],
)
def test_an_entry_is_a_full_host_name_and_perhaps_a_port(text, host, port):
    assert parse_entry(text) == Destination(host, port)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "localhost",
            "*",
            "*.",
            "*.org",
            "*.*.example.org",
            "a.*.example.org",
            "w*.example.org",
        ),
        *(
            "192.175.48.1",
            "127.1",
            "0x7f.1",
            "1.2.3.0x4",
            "[2620:4f:8000::1]:443",
            "2620:4f:8000::1",
        ),
        *(
            "example.com:",
            "example.com:0",
            "example.com:65536",
            "example.com:443:1",
            "example.com:+1",
        ),
        *("example.com:٤٤٣", "bücher.example", "example.com.", ".example.com", "a..example.com"),
        *(
            "-a.example.com",
            "a-.example.com",
            "a_b.example.com",
            "https://example.com",
            "a b.example",
        ),
        *("example.com/x", "user@example.com", f"{'a' * 64}.example", ".".join(["a" * 50] * 6)),
    ],
)
def test_anything_else_is_refused_with_what_is_allowed(text):
    with pytest.raises(ValueError, match="HOST or HOST:PORT"):
        parse_entry(text)


@pytest.mark.parametrize(
    ("entry", "wanted", "covered"),
    [
        ("api.example.com", "api.example.com:443", True),
        ("api.example.com", "API.EXAMPLE.com:443", True),
        ("api.example.com", "api.example.com:80", False),
        ("api.example.com", "xapi.example.com:443", False),
        ("api.example.com", "api.example.com.evil.example:443", False),
        ("api.example.com", "example.com:443", False),
        ("*.example.com", "a.example.com:443", True),
        ("*.example.com", "a.b.example.com:443", True),
        ("*.example.com", "example.com:443", False),
        ("*.example.com", "aexample.com:443", False),
        ("*.example.com:8443", "a.example.com:443", False),
    ],
)
def test_an_entry_covers_its_own_name_and_port_only(entry, wanted, covered):
    assert is_covered(parse_authority(wanted), [parse_entry(entry)]) is covered


@pytest.mark.parametrize(
    "text", ["192.175.48.1:443", "[::1]:443", "example.com", "*.example.com:443"]
)
def test_a_request_names_a_host_and_a_port(text):
    assert parse_authority(text) is None


@given(st.text(max_size=80) | st.from_regex(r"[a-z0-9.*:-]{1,40}", fullmatch=True))
def test_what_is_taken_is_written_and_read_again_as_the_same(text):
    try:
        entry = parse_entry(text)
    except ValueError:
        return
    assert parse_entry(str(entry)) == entry
    assert not entry.covers(Destination("other.example", entry.port)) or "other.example" in str(
        entry
    )
