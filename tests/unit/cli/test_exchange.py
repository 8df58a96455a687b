"""The client of `mcp-bridge call` against a real HTTP server that answers what it is told."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.cli.exchange import call_tool
from autobot_mcp_bridge.config.errors import DeniedError, UnavailableError
from autobot_mcp_bridge.model.mirrored import header_value
from autobot_mcp_bridge.policy.origin import OriginRule

SECONDS = 30.0
RESULT = {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "content": []}}


@pytest.fixture
def server():
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.seen.append((self.path, dict(self.headers.items()), json.loads(body)))
            if self.server.held is not None:
                self.server.held.wait(SECONDS)
                return
            status, kind, answer = self.server.answer
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.seen, running.held = [], None
        running.answer = (200, "application/json", json.dumps(RESULT).encode())
        running.url = f"http://127.0.0.1:{running.server_port}/t/default/s/time/mcp"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield running
        if running.held is not None:
            running.held.set()
        running.shutdown()
        thread.join()


def test_one_request_carries_everything_that_the_revision_asks_for(server):
    answer = call_tool(server.url, "mcpb_x", "get time", {"zone": "UTC"}, SECONDS)

    assert answer == RESULT
    ((path, headers, body),) = server.seen
    assert path == "/t/default/s/time/mcp"
    assert headers["Authorization"] == "Bearer mcpb_x"
    assert OriginRule((), ()).host_allowed(headers["Host"])
    assert headers["MCP-Protocol-Version"] == "2026-07-28"
    assert headers["Mcp-Method"] == body["method"] == "tools/call"
    assert headers["Mcp-Name"] == body["params"]["name"] == "get time"
    assert body["params"]["arguments"] == {"zone": "UTC"}
    meta = body["params"]["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {}


def test_an_answer_in_a_stream_is_found_behind_notifications(server):
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}
    events = f": hello\r\n\r\ndata: {json.dumps(progress)}\n\nid: 7\ndata:{json.dumps(RESULT)}\n\n"
    server.answer = (200, "text/event-stream; charset=utf-8", events.encode())

    assert call_tool(server.url, None, "x", {}, SECONDS) == RESULT
    assert "Authorization" not in server.seen[0][1]


def test_a_refusal_with_json_rpc_is_an_answer(server):
    refusal = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "no"}}
    server.answer = (503, "application/json", json.dumps(refusal).encode())

    assert call_tool(server.url, None, "x", {}, SECONDS) == refusal


def test_a_token_that_is_not_let_in_is_told_apart(server):
    server.answer = (401, "text/plain", b"")

    with pytest.raises(DeniedError):
        call_tool(server.url, "wrong", "x", {}, SECONDS)


@pytest.mark.parametrize(
    ("status", "kind", "answer"),
    [
        (200, "text/html", b"<html>"),
        (200, "application/json", b"{"),
        (200, "application/json", b"[]"),
        (200, "application/json", b'{"jsonrpc": "2.0", "id": 1}'),
        (200, "text/event-stream", b"data: {}\n\n"),
        (404, "text/plain", b"not found"),
    ],
)
def test_what_is_not_json_rpc_is_refused(server, status, kind, answer):
    server.answer = (status, kind, answer)

    with pytest.raises(UnavailableError, match="not JSON-RPC"):
        call_tool(server.url, None, "x", {}, SECONDS)


def test_a_server_that_never_answers_is_left_at_the_deadline(server):
    server.held = threading.Event()

    with pytest.raises(UnavailableError, match=r"within 0\.3 seconds"):
        call_tool(server.url, None, "x", {}, 0.3)


def test_nothing_that_listens_is_told(server):
    server.shutdown()
    server.server_close()

    with pytest.raises(UnavailableError, match="does not answer"):
        call_tool(server.url, None, "x", {}, SECONDS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("read_file", "read_file"),
        ("a b", "a b"),
        (" a", "=?base64?IGE=?="),
        ("", "=?base64??="),
        ("größe", "=?base64?Z3LDtsOfZQ==?="),
        ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
    ],
)
def test_a_name_that_no_header_can_carry_goes_in_base64(name, value):
    assert header_value(name) == value


@given(st.text(st.characters(max_codepoint=0x24F), max_size=20))
def test_a_header_value_never_breaks_its_line(name):
    value = header_value(name)

    assert value.isascii()
    assert value.isprintable()
    assert value == value.strip()
