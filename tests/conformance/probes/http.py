"""L: methods, media types, bodies and addresses of the endpoint, in the handshake era."""

from conformance.probing import LISTEN, code, kind, opened, probe, short, starts
from support.client import LATEST


def ping(ident=2):
    return {"jsonrpc": "2.0", "id": ident, "method": "ping"}


@probe("L06", "an unsupported MCP-Protocol-Version header: 400", starts("400"), shows="B9")
async def _(peer):
    async with peer.session() as session:
        return short(await session.send(ping(), headers={"MCP-Protocol-Version": "1999-01-01"}))


@probe("L08", "POST with Accept: application/json only")
async def _(peer):
    async with peer.session() as session:
        return short(await session.send(ping(), headers={"Accept": "application/json"}))


@probe("L09", "POST with Accept: */*")
async def _(peer):
    async with peer.session() as session:
        return short(await session.send(ping(), headers={"Accept": "*/*"}))


@probe("L10", "POST with Content-Type: text/plain: 415 or 400", starts("415", "400"), shows="A7")
async def _(peer):
    async with peer.session() as session:
        return short(await session.send(ping(), headers={"Content-Type": "text/plain"}))


@probe("L11", "malformed JSON: 400 with -32700", "400 json -32700", shows="A10")
async def _(peer):
    async with peer.session() as session:
        return short(await session.send(body=b"{not json"))


@probe("L12", "a batch in a session of 2025-11-25: refused", starts("400"), shows="A11")
async def _(peer):
    async with peer.session() as session:
        return short(await session.send([ping(7), ping(8)]))


@probe("L14", "GET with Accept: text/event-stream: a stream or 405", starts("200 sse", "405"))
async def _(peer):
    async with peer.session() as session:
        async with opened(session, **LISTEN) as stream:
            return f"{stream.status} {kind(stream)}"


@probe(
    "L15", "GET without text/event-stream in Accept: 406 or 405", starts("406", "405"), shows="A9"
)
async def _(peer):
    async with peer.session() as session:
        accept = {"Accept": "application/json"}
        return short(await session.send(method="GET", headers=accept))


@probe("L19", "PUT: 405", starts("405"), shows="A2")
async def _(peer):
    async with peer.stranger() as client:
        return short(await client.send(ping(), method="PUT"))


@probe("L20", "a foreign Origin: 403", starts("403"), shows="A3")
async def _(peer):
    async with peer.stranger() as client:
        foreign = {"Origin": "http://evil.example.com"}
        return short(await client.send(client.initialize_of(1), headers=foreign))


@probe("L21", "a foreign Host: 4xx", starts("4"), shows="A4")
async def _(peer):
    async with peer.stranger() as client:
        foreign = {"Host": "evil.example.com"}
        return short(await client.send(client.initialize_of(1), headers=foreign))


@probe(
    "L22", "a JSON-RPC response that nobody asked for: 202 or 4xx", starts("202", "4"), shows="D3"
)
async def _(peer):
    async with peer.session() as session:
        return short(await session.send({"jsonrpc": "2.0", "id": 991, "result": {}}))


@probe("L23", "a request whose id is null")
async def _(peer):
    async with peer.session() as session:
        return short(await session.send(ping(None)))


@probe("L25", "an argument of 2 MiB")
async def _(peer):
    async with peer.session() as session:
        message = session.call_of("test_simple_text", {"pad": "x" * (2 << 20)}, 3)
        return short(await session.send(message))


@probe(
    "L04",
    "a request without a session id: 400 where sessions are used",
    starts("400", "200"),
    shows="B3",
)
async def _(peer):
    async with peer.session() as session:
        response = await session.send(ping(), headers={"Mcp-Session-Id": None})
        return short(response)


@probe("L05", "an unknown session id: 404", starts("404"), shows="B4")
async def _(peer):
    async with peer.stranger() as client:
        headers = {"MCP-Protocol-Version": LATEST, "Mcp-Session-Id": "00000000-none"}
        response = await client.send(ping(), headers=headers)
        return f"{response.status} {code(response)}"
