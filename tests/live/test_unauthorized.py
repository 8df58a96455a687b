"""A 401 tells a stranger nothing: it depends on the form of the credential alone (NV-11; F1-F3)."""

import asyncio
import hashlib
import time

import pytest
import pytest_asyncio

from autobot_mcp_bridge.config.tokens import TokenStore
from autobot_mcp_bridge.model.agents import Role
from support.bridge import Bridge, new_token
from support.fakes import echo, hostile
from support.keys import made
from support.keys import store as keys
from support.waiting import eventually
from support.wire import WITHIN, Connection

pytestmark = pytest.mark.asyncio(loop_scope="module")

METHODS = ["POST", "GET", "DELETE", "PUT", "OPTIONS", "PATCH"]
STATES = {
    "ready": "/t/acme/p/web/s/ready/mcp",
    "sleeping": "/t/acme/p/web/s/sleeping/mcp",
    "broken": "/t/acme/p/web/s/broken/mcp",
    "stopped": "/t/acme/p/web/s/stopped/mcp",
    "disabled": "/t/acme/p/web/s/disabled/mcp",
    "cannot be installed": "/t/acme/p/web/s/missing/mcp",
    "unknown server": "/t/acme/p/web/s/nobody/mcp",
    "unknown project": "/t/acme/p/nowhere/s/ready/mcp",
    "unknown tenant": "/t/nobody/p/web/s/ready/mcp",
    "no project": "/t/acme/s/ready/mcp",
}
MALFORMED = [
    "/t/",
    "/t/acme",
    "/t/acme/p/web/s/ready",
    "/t/acme/p/web/s/ready/",
    "/t/acme/p/web/s/ready/mcp/",
    "/t/acme/p/web/s/ready/mcp/more",
    "/t/acme/p/web/s/READY/mcp",
    "/t/acme/p/web/s/-/mcp",
    "/t//p//s//mcp",
    "/t/acme/p/web/s/ready%2Fmcp",
    "/t/acme/p/web/s/%00/mcp",
    "/t/acme/p/web/s/" + "x" * 300 + "/mcp",
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    home = {"tenant": "acme", "project": "web"}
    servers = [
        echo("ready", **home),
        echo("sleeping", **home),
        hostile("exit_at_once", "broken", **home),
        echo("stopped", **home),
        echo("disabled", **home, enabled=False),
        {"name": "missing", **home, "command": ["/no/such/program"]},
        echo("other", **home),
        echo("ready", tenant="acme", project="shop"),
        echo("ready", tenant="rival", project="web"),
    ]
    async with Bridge(servers) as running:
        async with running.session("acme.web.ready") as session:
            await session.text("pid")
        async with running.modern("acme.web.broken") as client:
            for _ in range(7):
                await client.call("echo")
        await running.command("acme.web.stopped", "stop")
        await running.in_state("acme.web.broken", "broken")
        await running.in_state("acme.web.stopped", "stopped")
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def forms(bridge):
    """Each form of credential: the headers, and whether the token stands in the query."""
    valid = bridge.token("acme.web.ready")
    elsewhere = {
        "of another server": bridge.token("acme.web.other"),
        "of another project": bridge.token("acme.shop.ready"),
        "of another tenant": bridge.token("rival.web.ready"),
        "of nobody": new_token(),
        "expired": await expired(bridge),
        "revoked": await revoked(bridge),
        "cut": valid[:-1],
        "with more behind it": valid + "A",
        "in capitals": valid.upper(),
        "not ASCII": "mcpb_ä",
        "very long": "x" * 4000,
        "its digest": digest(valid),
        "of an issuer": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.AAAA",
    }
    return {
        "none": [],
        "in the query": [("?", valid)],
        "empty": [("Authorization", "")],
        "Basic": [("Authorization", "Basic dXNlcjpwYXNz")],
        "Basic with a token": [("Authorization", f"Basic {valid}")],
        "Bearer alone": [("Authorization", "Bearer")],
        "token alone": [("Authorization", valid)],
        "two headers": [("Authorization", f"Bearer {new_token()}")] * 2,
        "two headers, one right": [
            ("Authorization", f"Bearer {new_token()}"),
            ("Authorization", f"Bearer {valid}"),
        ],
        "two headers, the first right": [
            ("Authorization", f"Bearer {valid}"),
            ("Authorization", f"Bearer {new_token()}"),
        ],
        "two tokens": [("Authorization", f"Bearer {valid} {new_token()}")],
        "X-Api-Key": [("X-Api-Key", valid)],
        **await of_keys(bridge, valid),
        **{f"token {name}": [("Authorization", f"Bearer {t}")] for name, t in elsewhere.items()},
    }


async def of_keys(bridge, valid):
    """Forms with an API key that is not valid at any of these paths."""
    foreign, _ = await made(bridge, "rival")
    bound, _ = await made(bridge, "rival", "web", roles=[Role.TENANT_ADMIN])
    old, _ = await made(bridge, "acme", expires=time.time() - 60)
    gone, record = await made(bridge, "acme")
    keys(bridge).revoke("acme", record.id)
    await bridge.reload()
    own, _ = await made(bridge, "acme", "web")
    values = {"of rival": foreign, "bound": bound, "expired": old, "revoked": gone}
    return {
        **{f"X-Api-Key {name}": [("X-Api-Key", key)] for name, key in values.items()},
        **{
            f"token that is a key {name}": [("Authorization", f"Bearer {key}")]
            for name, key in values.items()
        },
        **{
            f"token beside a key {name}": [
                ("Authorization", f"Bearer {valid}"),
                ("X-Api-Key", key),
            ]
            for name, key in values.items()
        },
        "token that is a key, and a project": [
            ("Authorization", f"Bearer {foreign}"),
            ("X-Project", "web"),
        ],
        "token wrong beside a right key": [
            ("Authorization", f"Bearer {new_token()}"),
            ("X-Api-Key", own),
        ],
        "X-Api-Key twice": [("X-Api-Key", own), ("X-Api-Key", own)],
    }


def digest(token):
    return hashlib.sha256(token.encode()).hexdigest()


def store(bridge):
    return TokenStore(bridge.state_dir / "tokens.d")


async def expired(bridge):
    token, _ = store(bridge).new("acme.web.ready", "old", time.time() - 60)
    await bridge.reload()
    return token


async def revoked(bridge):
    token, record = store(bridge).new("acme.web.ready", "revoked", None)
    async with bridge.session("acme.web.ready", opened=False) as client:
        client.token = token

        async def status(wanted):
            return (await client.send(method="PUT")).status == wanted

        await eventually(lambda: status(405))
        store(bridge).revoke("acme.web.ready", record.id)
        await eventually(lambda: status(401))
    return token


async def ask(bridge, method, target, headers):
    """The comparable part of one answer, on a connection of its own."""
    sent = [("Host", "127.0.0.1"), *((k, v) for k, v in headers if k != "?")]
    query = "".join(f"?token={v}&access_token={v}" for k, v in headers if k == "?")
    body = b"{}" if method in {"POST", "PUT", "PATCH"} else None
    connection = await Connection.open(bridge.base)
    try:
        async with asyncio.timeout(WITHIN):
            response = await connection.request(method, target + query, sent, body)
        return response.comparable
    finally:
        await connection.close()


@pytest.mark.requirement("NV-11", "F1", "F2", "F3", "F6")
async def test_each_form_gets_one_answer_on_every_method_and_in_every_state(bridge, forms):
    table = {}
    for form, headers in forms.items():
        answers = {
            (method, name): await ask(bridge, method, target, headers)
            for method in METHODS
            for name, target in STATES.items()
        }
        distinct = set(answers.values())
        assert len(distinct) == 1, (form, {k: v for k, v in answers.items() if v != min(distinct)})
        table[form] = distinct.pop()
    assert {status for status, _, _ in table.values()} == {401}
    challenges = {
        form: dict(headers)["WWW-Authenticate"] for form, (_, headers, _) in table.items()
    }
    assert challenges["none"] == challenges["in the query"] == "Bearer"
    for form, challenge in challenges.items():
        if form.startswith(("token ", "X-Api-Key")):
            assert 'error="invalid_token"' in challenge, form
        assert "resource_metadata" not in challenge
    # Which token is wrong, and why, is not to be seen either.
    assert len({table[form] for form in forms if form.startswith("token ")  and form != "token alone"}) == 1  # fmt: skip


@pytest.mark.parametrize("target", MALFORMED)
async def test_a_malformed_path_below_t_is_the_same_401(bridge, forms, target):
    for form in ("none", "Basic", "token of nobody", "token of another tenant"):
        for method in METHODS:
            known = await ask(bridge, method, STATES["ready"], forms[form])
            assert await ask(bridge, method, target, forms[form]) == known, (form, method)


@pytest.mark.requirement("NV-10", "NV-11")
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "PUT", "OPTIONS"])
async def test_a_right_token_elsewhere_is_a_wrong_token(bridge, forms, method):
    """The token of `ready` at servers that exist and at others that do not."""
    right = [("Authorization", f"Bearer {bridge.token('acme.web.ready')}")]
    wrong = forms["token of nobody"]
    for name, target in STATES.items():
        if name != "ready":
            assert await ask(bridge, method, target, right) == await ask(
                bridge, method, STATES["ready"], wrong
            ), name


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_has_no_case(bridge, scheme):
    token = bridge.token("acme.web.ready")
    headers = [("Authorization", f"{scheme} {token}")]
    assert (await ask(bridge, "PUT", STATES["ready"], headers))[0] == 405


@pytest.mark.requirement("A6")
async def test_foreign_hosts_and_origins_come_before_the_token(bridge):
    for extra, statuses in ((("Host", "evil.example"), {421}), (("Origin", "https://e.x"), {403})):
        answers = {
            await ask_with(bridge, target, extra) for target in (*STATES.values(), *MALFORMED[:5])
        }
        assert {status for status, _, _ in answers} == statuses
        assert len(answers) == 1


async def ask_with(bridge, target, extra):
    connection = await Connection.open(bridge.base)
    try:
        return (await connection.request("POST", target, [extra], b"{}")).comparable
    finally:
        await connection.close()


async def test_no_token_of_the_table_stands_in_the_log(bridge, forms):
    log = bridge.log()
    for headers in forms.values():
        for _, value in headers:
            secret = value.rpartition(" ")[2]
            assert len(secret) < 20 or secret not in log
