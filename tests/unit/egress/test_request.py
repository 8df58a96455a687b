"""The head of a request to the egress proxy."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.egress import request
from autobot_mcp_bridge.egress.refusals import Reason, RefusedError
from autobot_mcp_bridge.model.destinations import Destination


def word_of(head):
    with pytest.raises(RefusedError) as caught:
        request.parse(head)
    return caught.value.reason.word


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_connect_leads_where_its_target_says_whatever_its_headers_say(version):
    head = f"CONNECT API.example.com:443 HTTP/{version}\r\nHost: other.example:1".encode()

    assert request.parse(head) == Destination("api.example.com", 443)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (b"GET http://api.example.com/ HTTP/1.1", "not_connect"),
        (b"POST / HTTP/1.1", "not_connect"),
        (b"CONNECT api.example.com HTTP/1.1", "not_listed"),
        (b"CONNECT 192.175.48.1:443 HTTP/1.1", "not_listed"),
        (b"CONNECT [::1]:443 HTTP/1.1", "not_listed"),
        (b"CONNECT localhost:443 HTTP/1.1", "not_listed"),
        (b"CONNECT api.example.com:443 HTTP/2", "bad_request"),
        (b"CONNECT  api.example.com:443 HTTP/1.1", "bad_request"),
        (b"connect api.example.com:443 HTTP/1.1", "bad_request"),
        (b"CONNECT api.example.com:443", "bad_request"),
        (b"\x16\x03\x01", "bad_request"),
        (b"", "bad_request"),
    ],
)
def test_any_other_line_is_refused(line, word):
    assert word_of(line + b"\r\nHost: api.example.com") == word


@given(st.binary(max_size=200))
def test_no_bytes_make_it_crash(head):
    with suppress(RefusedError):
        assert request.parse(head)


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason.status])
def test_a_refusal_is_a_whole_answer_of_http(reason):
    head, _, body = request.refusal(reason).partition(b"\r\n\r\n")

    assert head.startswith(f"HTTP/1.1 {reason.status} ".encode())
    assert f"Content-Length: {len(body)}".encode() in head
    assert body.decode() == f"{reason.word}: {reason.text}\n"
