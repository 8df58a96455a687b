"""The server's name in a ClientHello: found however it comes, and nothing else makes it crash."""

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.egress.hello import MOST, MOST_RECORDS, server_name
from autobot_mcp_bridge.egress.refusals import RefusedError
from support.egress import client_hello

HELLO = client_hello("api.example.com")


def vector(size, data):
    return len(data).to_bytes(size) + data


def extension(kind, data):
    return kind.to_bytes(2) + vector(2, data)


def named(*names):
    return extension(0, vector(2, b"".join(b"\0" + vector(2, name) for name in names)))


def record(message, kind=22):
    return bytes((kind, 3, 1)) + vector(2, message)


def message(*extensions, more=b""):
    body = b"\3\3" + bytes(32) + vector(1, b"") + vector(2, b"\x13\x01") + vector(1, b"\0")
    body += vector(2, b"".join(extensions)) + more
    return b"\1" + vector(3, body)


def reason_of(data):
    with pytest.raises(RefusedError) as caught:
        server_name(data)
    return caught.value.reason.word


@pytest.mark.parametrize(
    "versions", [{}, {"maximum_version": ssl.TLSVersion.TLSv1_2}], ids=["newest", "1.2"]
)
def test_the_name_is_found_in_what_openssl_sends(versions):
    assert server_name(client_hello("API.example.com", **versions)) == "api.example.com"


@given(st.integers(1, len(HELLO) - 1))
def test_before_the_whole_of_it_is_there_more_is_waited_for(size):
    assert server_name(HELLO[:size]) is None


@given(st.lists(st.integers(4, 64), min_size=1))
def test_it_may_be_cut_into_any_records(sizes):
    whole, data = message(named(b"api.example.com")), b""
    for size in sizes * len(whole):
        if whole:
            data += record(whole[:size])
            whole = whole[size:]
    assert server_name(data) == "api.example.com"
    assert server_name(data + record(b"\1", kind=20)) == "api.example.com"


@given(st.binary(max_size=300))
def test_no_bytes_make_it_crash(data):
    assert _name_or_reason(data)


@given(st.integers(0, len(HELLO) - 1), st.integers(0, 255))
def test_no_changed_byte_makes_it_crash(at, value):
    assert _name_or_reason(HELLO[:at] + bytes([value]) + HELLO[at + 1 :])


@given(st.integers(0, len(HELLO)), st.binary(max_size=40))
def test_no_inserted_bytes_make_it_crash(at, more):
    assert _name_or_reason(HELLO[:at] + more + HELLO[at:])


def _name_or_reason(data):
    try:
        name = server_name(data)
    except RefusedError as error:
        return error.reason.word
    return "more" if name is None else f"name {name}"


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"GET / HTTP/1.1\r\n", "not_tls"),
        (b"SSH-2.0-x\r\n", "not_tls"),
        (b"\x16\x02", "not_tls"),
        (b"\x80\x2e\x01\x03\x01", "not_tls"),  # the record of SSL 2
        (record(b""), "not_tls"),
        (record(b"\2"), "not_tls"),
        (record(b"\1", kind=21), "not_tls"),
        (record(message()), "no_server_name"),
        (record(message(extension(16, vector(2, b"\2h2")))), "no_server_name"),
        (record(message(named(b"a.example"), named(b"b.example"))), "not_tls"),
        (record(message(named(b"a.example", b"b.example"))), "not_tls"),
        (record(message(named(b"\xff.example"))), "not_tls"),
        (record(message(extension(0, b""))), "not_tls"),
        (record(message(extension(0, vector(2, b"\1" + vector(2, b"a.example"))))), "not_tls"),
        (record(message(named(b"a.example"), more=b"\0")), "not_tls"),
        (record(message(named(b"a.example")) + b"\1"), "not_tls"),
        (record(message(named(b"a.example"), extension(0xFE0D, b"x"))), "hidden_server_name"),
        (record(b"\1\xff\xff\xff" + bytes(10)), "hello_too_large"),
        (record(b"\1\xff\xff\xff" + bytes(2000))[:100], "hello_too_large"),
    ],
)
def test_what_is_no_plain_client_hello_is_refused_at_once(data, word):
    assert reason_of(data) == word


def test_it_waits_for_no_more_than_so_many_bytes_and_records():
    whole = message(extension(1, bytes(8000)))
    crumbs = [record(bytes([byte])) for byte in whole]

    assert server_name(b"".join(crumbs[:MOST_RECORDS])) is None
    assert reason_of(b"".join(crumbs[: MOST_RECORDS + 1])) == "hello_too_large"
    assert server_name(record(whole)[:8000]) is None
    assert reason_of(record(whole)[:8000] + bytes(MOST)) == "no_server_name"
    assert reason_of(record(b"\1" + MOST.to_bytes(3)) + b"\x16\x03") == "hello_too_large"
