"""L, M: what a server does wrong, and what comes through it whole."""

import json

from conformance.probing import WITHIN, answer, outcome, probe, said

TEXT = "é漢\u2028\U0001f600\x00"


@probe("L32", "a stray line on the server's stdout harms nothing", "noisy then ok", shows="H2")
async def _(peer):
    async with peer.session() as session:
        noisy = await session.text("gw_noise")
        return f"{noisy} then {json.loads(await session.text('gw_echo', value='ok'))}"


@probe("L33", "the server dies in a call: that call, then the session's next, then a new session")
async def _(peer):
    async with peer.session() as session:
        found = [await called(session, "gw_crash", 66), await called(session, "gw_echo", 67)]
    async with peer.session() as fresh:
        found.append(await called(fresh, "gw_echo", 68))
    return " / ".join(found)


async def called(client, tool, ident):
    message = client.call_of(tool, {}, ident)
    return outcome(await client.send(message, within=WITHIN), ident)


@probe(
    "L35",
    "unicode and a result of 1 MiB come through whole",
    "unicode=True size=1048576",
    shows="A19",
)
async def _(peer):
    async with peer.session() as session:
        back = json.loads(await session.text("gw_echo", value=TEXT))
        big = await session.text("gw_big", size=1 << 20)
        return f"unicode={back == TEXT} size={len(big)}"


@probe("M29", "two modern requests of one client share a process", "shared=True", shows="E21")
async def _(peer):
    async with peer.modern() as client:
        pids = []
        for ident in (82, 83):
            found = answer(await client.send(client.call_of("gw_pid", {}, ident)), ident)
            pids.append(said(found))
        return f"shared={bool(pids[0]) and pids[0] == pids[1]}"


@probe("M30", "the server dies in a modern call: that call, then the next")
async def _(peer):
    async with peer.modern() as client:
        return f"{await called(client, 'gw_crash', 84)} / {await called(client, 'gw_echo', 85)}"
