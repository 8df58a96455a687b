"""The endpoint as plain HTTP: methods, media types, sizes, targets (PROTOCOL A; BUGS D)."""

import gzip
import json
from contextlib import suppress

import pytest
import pytest_asyncio

from support.bridge import Bridge
from support.client import answer_to, dumps, text_of
from support.fakes import echo
from support.waiting import PATIENCE
from support.wire import Connection, encode, exchange, raw_exchange

pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = "application/json"
SSE = "text/event-stream"
HOST = {
    "http": {"allowed_hosts": ["mcp.example"], "allowed_origins": ["https://app.example"]},
    "limits": {"body_timeout": f"{2 * PATIENCE:g}s"},
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    async with Bridge(
        [echo("files"), echo("web", tenant="acme", project="p1")], host=HOST
    ) as running:
        yield running


@pytest.fixture(params=["session", "modern"])
def make(request, bridge):
    return getattr(bridge, request.param)


async def call(client, **headers):
    message = client.call_of("echo", {"text": "x"}, 1)
    return await client.send(message, headers={k.replace("_", "-"): v for k, v in headers.items()})


@pytest.mark.requirement("A1", "A2")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "OPTIONS", "TRACE"])
async def test_another_method_is_405_and_told_what_is_allowed(bridge, method):
    async with bridge.session("files") as session:
        response = await session.send(method=method)
        assert response.status == 405
        assert {"GET", "POST", "DELETE"} == set((response.header("Allow") or "").split(", "))


@pytest.mark.requirement("E10")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_modern_client_may_only_post(bridge, method):
    async with bridge.modern("files") as client:
        response = await client.send(method=method, headers={"Accept": SSE})
        assert (response.status, response.header("Allow")) == (405, "POST")


@pytest.mark.requirement("A8", "A15")
@pytest.mark.parametrize(
    "accept",
    [f"{JSON}, {SSE}", JSON, "*/*", "application/*", f"{JSON};q=0.5, {SSE};q=0.1", None],
)
async def test_a_client_that_takes_json_gets_an_answer(make, accept):
    async with make("files") as client:
        response = await call(client, Accept=accept)
        assert response.status == 200
        assert text_of(answer_to(response, 1)) == "x"


@pytest.mark.requirement("A8")
async def test_a_client_that_takes_only_json_never_gets_a_stream(make):
    async with make("files") as client:
        message = client.call_of("progress", {"nonce": "n"}, 1, "token")
        response = await client.send(message, headers={"Accept": JSON})
        assert (response.header("Content-Type") or "").startswith(JSON)
        assert text_of(json.loads(response.body)) == "n"


@pytest.mark.requirement("A15", "A17")
async def test_a_client_that_takes_only_a_stream_gets_one(make):
    async with make("files") as client:
        response = await call(client, Accept=SSE)
        assert response.is_stream
        assert response.header("X-Accel-Buffering") == "no"
        assert response.header("Cache-Control") == "no-cache"
        assert text_of(answer_to(response, 1)) == "x"


async def test_two_accept_headers_count_as_one_list(bridge):
    async with bridge.session("files") as session:
        headers = [(k, v) for k, v in session.headers({}).items() if k != "Accept"]
        headers += [("Accept", JSON), ("Accept", SSE)]
        body = dumps(session.call_of("echo", {"text": "x"}, 1))
        response = await exchange(session.url, "POST", headers, body)
        assert response.status == 200


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("accept", ["text/html", "image/*", f"{JSON};q=0"])
async def test_a_client_that_takes_neither_form_is_406(make, accept):
    async with make("files") as client:
        assert (await call(client, Accept=accept)).status == 406


@pytest.mark.requirement("A7")
@pytest.mark.parametrize("kind", ["text/plain", None, "application/x-www-form-urlencoded", "json"])
async def test_a_post_that_is_not_declared_as_json_is_415(make, kind):
    async with make("files") as client:
        assert (await call(client, Content_Type=kind)).status == 415


@pytest.mark.parametrize("kind", [JSON, "application/json; charset=utf-8", "Application/JSON"])
async def test_json_may_be_declared_in_any_spelling(make, kind):
    async with make("files") as client:
        assert (await call(client, Content_Type=kind)).status == 200


@pytest.mark.requirement("A10")
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"nonsense", b'{"a":1}}', b"\x00", b'{"jsonrpc":"2.0","id":NaN}', b"{'a':1}"],
)
async def test_a_body_that_is_no_json_is_a_parse_error(make, body):
    async with make("files") as client:
        response = await client.send(body=body)
        assert response.status == 400
        message = response.messages[0]
        assert (message["error"]["code"], message["id"]) == (-32700, None)


@pytest.mark.parametrize(
    "body",
    [
        b"1",
        b"null",
        b'"x"',
        b"{}",
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
        b'{"id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":1,"method":5}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":5}',
    ],
)
async def test_json_that_is_no_message_is_an_invalid_request(bridge, body):
    async with bridge.session("files") as session:
        response = await session.send(body=body)
        assert response.status == 400
        assert response.messages[0]["error"]["code"] == -32600


async def test_deep_nesting_is_refused_and_the_proxy_lives(make):
    async with make("files") as client:
        deep = b"[" * 200_000 + b"]" * 200_000
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + deep + b"}}"
        assert (await client.send(body=body)).status == 400
        assert (await call(client)).status == 200


@pytest.mark.requirement("A13")
async def test_a_body_over_the_cap_is_413(make):
    async with make("files") as client:
        body = dumps(client.call_of("echo", {"text": "x" * (5 << 20)}))
        assert (await client.send(body=body)).status == 413


@pytest.mark.requirement("A13")
async def test_a_chunked_body_over_the_cap_is_413_before_it_ends(bridge):
    async with bridge.session("files") as session:
        headers = session.headers({}) | {"Transfer-Encoding": "chunked"}
        connection = await Connection.open(session.url)
        connection.send(encode("POST", session.target, headers, None))
        piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        for _ in range(70):  # 4.4 MiB, and never the last chunk
            connection.send(piece)
        head = await connection.read_head()
        assert head.status == 413
        await connection.close()


async def test_a_packed_body_is_refused_unread(bridge):
    async with bridge.session("files") as session:
        packed = gzip.compress(json.dumps(session.request_of("ping", {}, 7)).encode())
        headers = session.headers({}) | {"Content-Encoding": "gzip"}
        response = await exchange(session.url, "POST", headers, packed)
        assert response.status == 415
        assert b"Content-Encoding" in response.body


async def test_a_client_that_asks_before_its_body_is_told_to_go_on_once_its_token_is_good(bridge):
    async with bridge.session("files") as session:
        body = json.dumps(session.request_of("ping", {}, 7)).encode()
        headers = session.headers({}) | {"Expect": "100-continue", "Content-Length": str(len(body))}
        for token, status in ((session.token, 100), ("mcpb_" + "x" * 43, 401)):
            connection = await Connection.open(session.url)
            headers["Authorization"] = f"Bearer {token}"
            connection.send(encode("POST", session.target, headers, None))
            assert (await connection.read_head()).status == status
            if status == 100:
                connection.send(body)
                assert (await connection.read_head()).status == 200
            await connection.close()


async def test_a_body_that_stalls_is_given_up(bridge):
    async with bridge.session("files") as session:
        headers = session.headers({}) | {"Content-Length": "1000"}
        data = encode("POST", session.target, headers, None) + b'{"jsonrpc"'
        answer = await raw_exchange(session.url, data)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 408")


@pytest.mark.requirement("A13")
async def test_headers_over_the_limit_are_refused(bridge):
    async with bridge.session("files") as session:
        assert (await call(session, X_Long="y" * 20_000)).status == 431
        with suppress(ConnectionError, EOFError):  # an answer may be lost with what is not read
            assert (await call(session, X_Long="y" * 200_000)).status in {400, 431}
    async with bridge.session("files") as another:
        assert (await call(another)).status == 200


@pytest.mark.parametrize(
    "line",
    [
        b"POST // HTTP/1.1",
        b"BREW /t/default/s/files/mcp HTTP/1.1",
        b"POST /t/%zz/s/files/mcp HTTP/1.1",
        b"POST /t/default/s/files/mcp%00 HTTP/1.1",
        b"POST \x00 HTTP/1.1",
        b"POST /t/default/s/../s/files/mcp HTTP/1.1",
        b"GET http://[::1/ HTTP/1.1",
        b"POST * HTTP/1.1",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST /t/default/s/files/mcp HTTP/9.9",
    ],
)
async def test_a_malformed_request_line_is_answered_and_the_proxy_lives(bridge, line):
    data = line + b"\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    answer = await raw_exchange(bridge.base, data)
    assert answer == b"" or answer.split(b" ")[1][:1] == b"4", answer[:200]
    assert (await bridge.health()).status == 200


async def test_a_trailing_slash_is_never_a_redirect(bridge):
    async with bridge.session("files") as session:
        message = session.call_of("echo", {"text": "x"}, 1)
        assert (await session.send(message, target=session.target + "/")).status in {200, 401, 404}


@pytest.mark.requirement("F6", "A1")
@pytest.mark.parametrize(
    "path",
    ["/", "/mcp", "/sse", "/register", "/token", "/authorize", "/.well-known/openid-configuration",
     "/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource",
     "/.well-known/oauth-protected-resource/t/default/s/files/mcp", "/metrics", "/status"],
)  # fmt: skip
async def test_any_other_path_is_404_without_a_token(bridge, path):
    for method in ("GET", "POST"):
        response = await exchange(bridge.base + path, method)
        assert response.status == 404
        assert response.header("WWW-Authenticate") is None


@pytest.mark.requirement("A4")
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "mcp.example.", ""])
async def test_a_foreign_host_is_421_before_anything_else(bridge, host):
    async with bridge.session("files") as session:
        assert (await call(session, Host=host)).status in {400, 421}
        assert (await session.send(method="GET", headers={"Host": host})).status in {400, 421}


@pytest.mark.requirement("A4")
@pytest.mark.parametrize("host", ["mcp.example", "mcp.example:8443", "localhost", "[::1]:80"])
async def test_a_host_of_loopback_or_of_the_list_is_let_in(bridge, host):
    async with bridge.session("files") as session:
        assert (await call(session, Host=host)).status == 200


@pytest.mark.requirement("A3")
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://app.example:444", "x"])
async def test_a_foreign_origin_is_403_with_or_without_a_token(bridge, origin):
    async with bridge.session("files") as session:
        assert (await call(session, Origin=origin)).status == 403
        assert (await call(session, Origin=origin, Authorization=None)).status == 403


@pytest.mark.requirement("A3")
async def test_an_origin_of_the_list_is_let_in(make):
    async with make("files") as client:
        assert (await call(client, Origin="https://app.example")).status == 200


@pytest.mark.requirement("NV-13")
async def test_strangers_learn_from_healthz_only_whether_all_is_well(bridge):
    response = await bridge.health()
    assert response.status == 200
    assert json.loads(response.body) == {"status": "ok"}
    details = await bridge.health(operator=True)
    assert "acme.p1.web" in details.body.decode()


async def test_pipelined_requests_are_answered_in_order(bridge):
    async with bridge.session("files") as session:
        connection = await Connection.open(session.url)
        for number in range(5):
            body = dumps(session.call_of("echo", {"text": f"n{number}"}, number))
            connection.send(encode("POST", session.target, session.headers({}), body))
        for number in range(5):
            head = await connection.read_head()
            answer = json.loads(await connection._read_body("POST", head))
            assert (answer["id"], text_of(answer)) == (number, f"n{number}")
        await connection.close()
