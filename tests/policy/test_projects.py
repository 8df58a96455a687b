"""Project isolation at the MCP endpoints (NV-24 to NV-28), in both eras; contact is counted by the servers."""

import pytest
import pytest_asyncio

from autobot_mcp_bridge.model.agents import Role
from support.audited import calls, recorded, verified
from support.bridge import Bridge
from support.client import answer_to, code_of, error_of
from support.fakes import echo
from support.keys import client, made, shown, untouched
from support.wire import exchange

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHARED, WEB, SHOP = "acme.files", "acme.web.files", "acme.shop.files"
MISMATCH = "mcp_server_project_mismatch"
ERAS = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
# The project of the key, what X-Project says, and the servers that this opens.
CONTEXTS = {
    "key of web": ("web", None, {SHARED, WEB}),
    "key of web that says so": ("web", "web", {SHARED, WEB}),
    "key of shop": ("shop", None, {SHARED, SHOP}),
    "key of the tenant": (None, None, {SHARED}),
    "key of the tenant from web": (None, "web", {SHARED, WEB}),
    "key of the tenant from shop": (None, "shop", {SHARED, SHOP}),
    "key of the tenant from nowhere": (None, "nowhere", {SHARED}),
    "key of web that says shop": ("web", "shop", set()),
    "key of web that says nothing": ("web", "", set()),
    "key of the tenant, no name": (None, "../shop", set()),
    "key of the tenant in capitals": (None, "WEB", set()),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    servers = [
        echo("files", tenant="acme"),
        echo("files", tenant="acme", project="web"),
        echo("files", tenant="acme", project="shop"),
        echo("sleeping", tenant="acme", project="shop"),
        echo("disabled", tenant="acme", project="shop", enabled=False),
    ]
    async with Bridge(servers) as running:
        yield running


def unopened(bridge, instance, key, *, modern, **options):
    """A client that has no session yet, where it needs one."""
    more = {} if modern else {"opened": False}
    return client(bridge, instance, key, modern=modern, **options, **more)


async def refusals(bridge):
    """How many there were for the project, as told and as logged."""
    told = await bridge.metric("mcp_bridge_refusals_total", reason=MISMATCH)
    return told, bridge.log().count(f"refused: {MISMATCH}")


@pytest.mark.requirement("NV-27")
async def test_a_refusal_is_a_line_of_the_audit_that_names_the_agent(bridge):
    key, _ = await made(bridge, "acme", "shop")
    before = len(calls(bridge, error=MISMATCH))
    async with unopened(bridge, WEB, key, modern=True) as caller:
        response = await caller.send(caller.call_of("pid", {}, ident=1))
        assert code_of(answer_to(response, 1)) == MISMATCH

    lines = await recorded(bridge, before + 1, error=MISMATCH)
    line = lines[-1]
    assert (line["event"], line["status"], line["tenant"]) == ("scope_violation", "blocked", "acme")
    assert (line["project"], line["instance"]) == ("shop", WEB)
    assert line["agent_id"]
    assert line["method"] == f"POST {bridge.path(WEB)}"
    assert verified(bridge)["clean"]


@pytest.mark.requirement("NV-24", "NV-25", "NV-27", "NV-28")
@ERAS
@pytest.mark.parametrize("context", CONTEXTS)
async def test_a_projects_server_is_called_from_that_project_only(bridge, context, modern):
    project, named, opens = CONTEXTS[context]
    key, _ = await made(bridge, "acme", project)
    closed = {SHARED, WEB, SHOP} - opens

    before = await refusals(bridge)
    async with untouched(bridge, *closed):
        for instance in closed:
            async with unopened(bridge, instance, key, project=named, modern=modern) as caller:
                message = caller.call_of("pid", {}, ident="mine")
                response = await caller.send(message)
                assert (response.status, code_of(answer_to(response, "mine"))) == (200, MISMATCH)
    told, logged = await refusals(bridge)

    assert (told - before[0], logged - before[1]) == (len(closed), len(closed))
    for instance in opens:
        async with client(bridge, instance, key, project=named, modern=modern) as caller:
            assert await caller.text("echo", text="let in") == "let in"


@pytest.mark.requirement("NV-24", "NV-25")
@ERAS
@pytest.mark.parametrize("role", list(Role))
async def test_no_role_calls_across_projects(bridge, role, modern):
    key, _ = await made(bridge, "acme", roles=[role])

    async with untouched(bridge, WEB), unopened(bridge, WEB, key, modern=modern) as caller:
        message = caller.request_of("tools/list", {}, ident=1)
        assert code_of(answer_to(await caller.send(message), 1)) == MISMATCH
    async with client(bridge, WEB, key, project="web", modern=modern) as caller:
        assert "echo" in await caller.tools()


@pytest.mark.requirement("NV-25")
async def test_initialize_from_another_project_is_refused_and_makes_no_session(bridge):
    key, _ = await made(bridge, "acme", "shop")
    before = await bridge.metric("mcp_bridge_sessions", server=WEB)

    async with client(bridge, WEB, key, opened=False) as caller:
        response = await caller.send(caller.initialize_of("first"))

    assert error_of(answer_to(response, "first"))["code"] == -32000
    assert response.header("Mcp-Session-Id") is None
    assert await bridge.metric("mcp_bridge_sessions", server=WEB) == before


@pytest.mark.requirement("NV-25")
async def test_a_session_cannot_be_reached_from_another_project(bridge):
    """Not by its own key either: its stream, its end and its calls are all refused."""
    key, _ = await made(bridge, "acme")

    async with client(bridge, WEB, key, project="web") as session:
        async with untouched(bridge, WEB):
            session.project = "shop"
            for method in ("GET", "DELETE"):
                response = await session.send(method=method)
                assert response.status == 403
                assert response.messages[0]["error"]["data"]["code"] == MISMATCH
            notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}}
            assert (await session.send(notice)).status == 403
        session.project = "web"
        assert await session.text("echo", text="still there") == "still there"


@pytest.mark.requirement("NV-25")
@pytest.mark.parametrize("name", ["sleeping", "disabled", "nobody"])
async def test_a_server_of_another_project_is_refused_whether_it_sleeps_or_exists(bridge, name):
    key, _ = await made(bridge, "acme", "web")
    target = f"/t/acme/p/shop/s/{name}/mcp"

    async with client(bridge, WEB, key, modern=True) as caller:
        message = caller.call_of("pid", {}, ident=7)
        response = await caller.send(message, target=target)
        known = await caller.send(message, target="/t/acme/p/shop/s/files/mcp")

    assert response.comparable == known.comparable
    assert await bridge.metric("mcp_bridge_starts_total", server="acme.shop.sleeping") == 0


async def test_a_token_alone_comes_from_the_project_of_its_route(bridge):
    async with bridge.modern(WEB) as caller:
        message = caller.call_of("echo", {"text": "x"}, ident=1)
        statuses = {}
        for named in (None, "web", "shop", ""):
            response = await caller.send(message, headers={"X-Project": named})
            answer = answer_to(response, 1)
            statuses[named] = "error" in answer and code_of(answer)
    assert statuses == {None: False, "web": False, "shop": MISMATCH, "": MISMATCH}
    async with bridge.modern(SHARED) as caller:
        response = await caller.send(message, headers={"X-Project": "shop"})
        assert "result" in answer_to(response, 1)


async def test_a_project_that_is_named_twice_is_400(bridge):
    key, _ = await made(bridge, "acme")
    headers = [("Host", "127.0.0.1"), *shown(key, "web").items(), ("X-Project", "web")]

    assert (await exchange(bridge.url(WEB), "POST", headers, b"{}")).status == 400


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b'{"jsonrpc":"1.0"}'], ids=repr)
async def test_what_is_no_message_is_refused_as_everywhere(bridge, body):
    key, _ = await made(bridge, "acme", "shop")
    async with untouched(bridge, WEB):
        async with client(bridge, WEB, key, modern=True) as caller:
            response = await caller.send(body=body)
        assert response.status in {400, 403}


async def test_a_client_that_takes_only_streams_gets_the_refusal_as_one(bridge):
    key, _ = await made(bridge, "acme", "shop")
    async with client(bridge, WEB, key, modern=True) as caller:
        message = caller.call_of("pid", {}, ident=3)
        response = await caller.send(message, headers={"Accept": "text/event-stream"})

    assert response.is_stream
    assert code_of(answer_to(response, 3)) == MISMATCH
