"""M: statuses, codes and headers of 2026-07-28."""

import base64

from conformance.probing import answer, code, probe, short, starts
from support.client import LATEST, META, MODERN, dumps

MISMATCH = "400 json -32020"
UNKNOWN = "404 json -32601"
FORM = {META + "clientCapabilities": {"elicitation": {"form": {}}}}


async def discover(peer, headers=None, version=MODERN):
    async with peer.modern() as client:
        client.version = version
        return await client.send(client.request_of("server/discover", {}, 1), headers=headers)


async def called(peer, tool, arguments=None, headers=None):
    async with peer.modern() as client:
        return await client.send(client.call_of(tool, arguments or {}, 1), headers=headers)


async def asked(peer, method, params=None):
    async with peer.modern() as client:
        return await client.send(client.request_of(method, params or {}, 1))


def discovered(seen):
    return seen.startswith("200") and MODERN in seen


@probe("M01", "server/discover: a result that names 2026-07-28", discovered, shows="E2")
async def _(peer):
    response = await discover(peer)
    result = answer(response, 1).get("result") or {}
    return f"{short(response)} supported={','.join(result.get('supportedVersions', []))}"


@probe("M02", "no Mcp-Method header: 400 -32020", MISMATCH, shows="E3")
async def _(peer):
    return short(await discover(peer, {"Mcp-Method": None}))


@probe("M03", "another Mcp-Method: 400 -32020", MISMATCH, shows="E3")
async def _(peer):
    return short(await discover(peer, {"Mcp-Method": "tools/list"}))


@probe("M04", "another Mcp-Name on tools/call: 400 -32020", MISMATCH, shows="E4")
async def _(peer):
    return short(await called(peer, "test_simple_text", headers={"Mcp-Name": "other"}))


@probe("M05", "no Mcp-Name on tools/call: 400 -32020", MISMATCH, shows="E4")
async def _(peer):
    return short(await called(peer, "test_simple_text", headers={"Mcp-Name": None}))


@probe("M06", "Mcp-Name in its base64 form: accepted", starts("200"), shows="E4")
async def _(peer):
    value = f"=?base64?{base64.b64encode(b'test_simple_text').decode()}?="
    return short(await called(peer, "test_simple_text", headers={"Mcp-Name": value}))


@probe("M07", "the header's version differs from that of _meta: 400 -32020", MISMATCH, shows="E6")
async def _(peer):
    return short(await discover(peer, {"MCP-Protocol-Version": MODERN}, version=LATEST))


@probe(
    "M08",
    "an unknown version in both: 400 -32022 that names the supported ones",
    starts("400 json -32022 supported=2"),
    shows="E6",
)
async def _(peer):
    response = await discover(peer, version="2099-01-01")
    data = response.messages[0]["error"].get("data") or {}
    return f"{short(response)} supported={','.join(data.get('supported', []))}"


@probe("M09", "_meta without clientCapabilities: 400 -32602", "400 json -32602", shows="E7")
async def _(peer):
    async with peer.modern() as client:
        message = client.prepare(client.request_of("server/discover", {}, 1))
        del message["params"]["_meta"][META + "clientCapabilities"]
        headers = client.headers(message)
        return short(await client.send(headers=headers, body=dumps(message)))


@probe("M10", "an unknown method: 404 -32601", UNKNOWN, shows="E8")
async def _(peer):
    return short(await asked(peer, "no/such"))


@probe("M11", "GET at 2026-07-28: 405", starts("405"), shows="E10")
async def _(peer):
    async with peer.modern() as client:
        return short(await client.send(method="GET", headers={"Accept": "text/event-stream"}))


@probe("M12", "DELETE at 2026-07-28: 405", starts("405"), shows="E10")
async def _(peer):
    async with peer.modern() as client:
        return short(await client.send(method="DELETE"))


@probe(
    "M13", "a stray Mcp-Session-Id: ignored, and none is made", "200 json minted=False", shows="E11"
)
async def _(peer):
    response = await discover(peer, {"Mcp-Session-Id": "stray"})
    return f"{short(response)} minted={response.header('Mcp-Session-Id') is not None}"


@probe(
    "M14",
    "methods that are gone (ping, logging/setLevel): 404",
    f"{UNKNOWN} / {UNKNOWN}",
    shows="E8",
)
async def _(peer):
    level = await asked(peer, "logging/setLevel", {"level": "info"})
    return f"{short(await asked(peer, 'ping'))} / {short(level)}"


@probe(
    "M19",
    "the state of a call with input_required survives its retry",
    "input_required then complete",
    shows="E19",
)
async def _(peer):
    async with peer.modern() as client:
        call = {"name": "test_input_required_result_request_state", "_meta": FORM}
        message = client.request_of("tools/call", call, 20)
        first = answer(await client.send(message), 20).get("result") or {}
        filled = {"action": "accept", "content": {"ok": True}}
        answers = dict.fromkeys(first.get("inputRequests") or {}, filled)
        state = {key: first[key] for key in ("requestState",) if key in first}
        retry = {**call, "inputResponses": answers, **state}
        second = answer(await client.send(client.request_of("tools/call", retry, 21)), 21)
        kinds = [found.get("resultType") for found in (first, second.get("result") or {})]
        return f"{kinds[0]} then {kinds[1]}"


@probe(
    "M20", "a call that needs an undeclared capability: 400 -32021", "400 json -32021", shows="E9"
)
async def _(peer):
    return short(await called(peer, "test_missing_capability"))


@probe("M21", "results carry resultType, and cache hints where required", "complete True True")
async def _(peer):
    result = answer(await asked(peer, "tools/list"), 1).get("result") or {}
    scoped = result.get("cacheScope") in ("public", "private")
    return f"{result.get('resultType')} {isinstance(result.get('ttlMs'), int)} {scoped}"


@probe("M22", "a foreign Origin: 403", starts("403"), shows="A3")
async def _(peer):
    return short(await discover(peer, {"Origin": "http://evil.example.com"}))


@probe("M23", "a JSON-RPC response as body: 4xx", starts("4"), shows="E12")
async def _(peer):
    async with peer.modern() as client:
        return short(await client.send({"jsonrpc": "2.0", "id": 1, "result": {}}))


@probe(
    "M25", "a modern _meta without the MCP-Protocol-Version header: 400", starts("400"), shows="E1"
)
async def _(peer):
    return short(await discover(peer, {"MCP-Protocol-Version": None}))


@probe("M26", "initialize sent the modern way: 404 -32601", UNKNOWN, shows="E8")
async def _(peer):
    info = {"name": "probe", "version": "1"}
    params = {"protocolVersion": MODERN, "capabilities": {}, "clientInfo": info}
    return short(await asked(peer, "initialize", params))


@probe(
    "M27",
    "Mcp-Param-* that differs from its argument, or is missing: 400 -32020",
    f"200 / {MISMATCH} / {MISMATCH}",
    shows="E5",
)
async def _(peer):
    region = {"region": "eu"}
    right, wrong, none = [
        await called(peer, "test_x_mcp_header", region, {"Mcp-Param-Region": value})
        for value in ("eu", "us", None)
    ]
    return f"{right.status} / {short(wrong)} / {short(none)}"


def names_versions(seen):
    return seen.startswith("error ") and MODERN in seen


@probe(
    "S01",
    "a modern-only server: initialize gets an error that names its versions",
    names_versions,
    era="modern",
    sessions="isolated",
    shows="G4",
)
async def _(peer):
    async with peer.stranger() as client:
        response = await client.send(client.initialize_of(1))
        error = answer(response, 1).get("error")
        return f"error {error}" if error else f"{short(response)} {code(response)}"


@probe(
    "S02",
    "a modern-only server that is shared: initialize is answered by translation",
    f"v={LATEST} tools=True",
    era="modern",
    sessions="shared",
    shows="G4",
)
async def _(peer):
    async with peer.session() as session:
        return f"v={session.version} tools={bool(await session.tools())}"
