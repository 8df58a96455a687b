"""`/v1`: what each role sees from each project, what strangers learn (nothing), what delete does."""

import json

import pytest
import pytest_asyncio
from jsonschema import Draft202012Validator

from autobot_mcp_bridge.model.agents import Role
from support.bridge import Bridge, new_token
from support.fakes import echo, hostile
from support.keys import client, get, made, untouched
from support.waiting import eventually
from support.wire import exchange

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHARED, WEB, SHOP, RIVAL = "acme.files", "acme.web.files", "acme.shop.files", "rival.files"
MISMATCH = "mcp_server_project_mismatch"
STATES = {
    "ready": WEB,
    "sleeping": "acme.web.sleeping",
    "broken": "acme.web.broken",
    "stopped": "acme.web.stopped",
    "disabled": "acme.web.disabled",
    "shared": SHARED,
    "unknown": "acme.web.nobody",
    "unknown project": "acme.nowhere.files",
    "of another tenant": RIVAL,
    "unknown tenant": "nobody.files",
    "no name": "-.-",
}
ABOUT = ("", "/status", "/discovery", "/tools", "/sessions", "/nothing")
VIEWS = ("", "/status", "/discovery", "/tools")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    home = {"tenant": "acme", "project": "web"}
    servers = [
        echo("files", tenant="acme"),
        echo("files", **home),
        echo("sleeping", **home),
        hostile("exit_at_once", "broken", **home),
        echo("stopped", **home),
        echo("disabled", **home, enabled=False),
        echo("files", tenant="acme", project="shop"),
        echo("files", tenant="rival"),
    ]
    async with Bridge(servers) as running:
        await running.command("acme.web.stopped", "stop")
        async with running.modern("acme.web.broken") as caller:
            for _ in range(7):
                await caller.call("echo")
        await running.in_state("acme.web.broken", "broken")
        yield running


async def api(bridge, path, key, project=None, **options):
    """Status and document of one answer."""
    response = await get(bridge, f"/v1/servers{path}", key, project, **options)
    return response.status, json.loads(response.body)


async def listed(bridge, key, project=None):
    status, body = await api(bridge, "", key, project)
    assert status == 200
    return {server["id"] for server in body["servers"]}


# ---- strangers ----


async def test_a_strangers_answer_depends_on_the_form_of_the_credential_alone(bridge):
    """Routes, forms and states: status, headers but Date, and body."""
    key, _ = await made(bridge, "acme", "web")
    forms = {
        "none": [],
        "empty": [("Authorization", "")],
        "Basic": [("Authorization", "Basic dXNlcjpwYXNz")],
        "token of nobody": [("Authorization", f"Bearer {new_token()}")],
        "token of a server": [("Authorization", f"Bearer {bridge.token(WEB)}")],
        "token beside a key": [
            ("Authorization", f"Bearer {bridge.token(WEB)}"),
            ("X-API-Key", key),
        ],
        "key cut": [("Authorization", f"Bearer {key[:-1]}")],
        "key of nobody": [("X-API-Key", "mcpk_nobody")],
        "two keys": [("X-API-Key", key), ("X-API-Key", key)],
        "a project and no key": [("X-Project", "web")],
    }
    paths = ["/v1/", "/v1/servers", "/v1/nothing"]
    paths += [f"/v1/servers/{name}{about}" for name in STATES.values() for about in ABOUT]
    table = {}
    for form, headers in forms.items():
        answers = set()
        for path in paths:
            for method in ("GET", "DELETE", "POST"):
                sent = [("Host", "127.0.0.1"), *headers]
                answers.add((await exchange(bridge.base, method, sent, target=path)).comparable)
        assert len(answers) == 1, form
        table[form] = answers.pop()

    assert {status for status, _, _ in table.values()} == {401}
    none = {"none", "a project and no key"}
    assert len({answer for form, answer in table.items() if form in none}) == 1
    assert len({answer for form, answer in table.items() if form not in none}) == 1


async def test_strangers_contact_no_server(bridge):
    starts = await bridge.metric("mcp_bridge_starts_total", server="acme.web.sleeping")
    async with untouched(bridge, WEB, SHARED):
        for name in STATES.values():
            for about in ABOUT:
                assert (await get(bridge, f"/v1/servers/{name}{about}", None)).status == 401
    assert await bridge.metric("mcp_bridge_starts_total", server="acme.web.sleeping") == starts


@pytest.mark.parametrize("name", ["files", "nobody", "-"])
async def test_another_tenants_servers_are_like_none(bridge, name):
    key, _ = await made(bridge, "acme", roles=[Role.TENANT_ADMIN])
    for method in ("GET", "DELETE"):
        foreign = await get(bridge, f"/v1/servers/rival.{name}", key, method=method)
        own = await get(bridge, "/v1/servers/acme.nobody", key, method=method)
        assert foreign.status == 404
        assert foreign.comparable == own.comparable


# ---- projects ----


@pytest.mark.requirement("NV-26", "NV-27")
@pytest.mark.parametrize("name", ["files", "nobody"])
async def test_from_another_project_every_route_about_a_server_is_403(bridge, name):
    key, _ = await made(bridge, "acme", "web")
    reasons = ("mcp_bridge_refusals_total", MISMATCH)
    before = await bridge.metric(reasons[0], reason=reasons[1])
    requests = [("GET", view) for view in VIEWS] + [("DELETE", ""), ("DELETE", "/sessions")]

    async with untouched(bridge, SHOP):
        for method, about in requests:
            status, body = await api(bridge, f"/acme.shop.{name}{about}", key, method=method)
            assert (status, body["error"]["data"]["code"]) == (403, MISMATCH), (method, about)

    assert await bridge.metric(reasons[0], reason=reasons[1]) - before == len(requests)
    for about in VIEWS:  # the positive control
        assert (await api(bridge, f"/{WEB}{about}", key))[0] == 200, about


@pytest.mark.requirement("NV-24", "NV-28", "NV-29")
@pytest.mark.parametrize("role", list(Role))
async def test_who_sees_which_servers(bridge, role):
    web = {name for name in STATES.values() if name.startswith("acme.web.")} - {"acme.web.nobody"}
    free, _ = await made(bridge, "acme", roles=[role])
    bound, _ = await made(bridge, "acme", "web", roles=[role])
    everything = {SHARED, SHOP, *web} if role is not Role.MEMBER else {SHARED}

    assert await listed(bridge, free) == everything
    assert await listed(bridge, free, "shop") == {SHARED, SHOP}
    assert await listed(bridge, free, "nowhere") == {SHARED}
    assert await listed(bridge, bound) == {SHARED, *web}
    assert await listed(bridge, bound, "web") == {SHARED, *web}


@pytest.mark.requirement("NV-29")
@pytest.mark.parametrize("role", [Role.TENANT_ADMIN, Role.SECURITY_OFFICER])
async def test_overseers_without_a_project_see_every_view_and_change_nothing(bridge, role):
    key, _ = await made(bridge, "acme", roles=[role])

    for name in (WEB, SHOP, SHARED):
        for about in VIEWS:
            assert (await api(bridge, f"/{name}{about}", key))[0] == 200, (name, about)
    async with untouched(bridge, SHOP):
        for about in ("", "/sessions"):
            status, body = await api(bridge, f"/{SHOP}{about}", key, method="DELETE")
            assert (status, body["error"]["data"]["code"]) == (403, MISMATCH)


async def test_a_header_that_contradicts_the_key_is_403_everywhere(bridge):
    key, _ = await made(bridge, "acme", "web", roles=[Role.TENANT_ADMIN])
    for path in ("", f"/{WEB}", f"/{SHARED}/tools", f"/{SHOP}/status"):
        status, body = await api(bridge, path, key, "shop")
        assert (status, body["error"]["data"]["code"]) == (403, MISMATCH), path


# ---- answers ----


@pytest.fixture(scope="module")
def schema_of():
    from autobot_mcp_bridge.proxy.v1.openapi import document

    whole = json.loads(document())

    def check(name, body):
        schema = {
            "$ref": f"#/components/schemas/{name}",
            "components": whole["components"],
        }
        Draft202012Validator(schema).validate(body)

    return check


async def test_answers_have_the_form_that_the_document_says(bridge, schema_of):
    key, _ = await made(bridge, "acme", "web")
    for path, name in (
        ("", "Servers"),
        (f"/{WEB}", "Server"),
        (f"/{WEB}/status", "Status"),
        (f"/{WEB}/discovery", "Discovery"),
        (f"/{WEB}/tools", "Tools"),
        ("/acme.shop.files", "Error"),
        ("/acme.web.nobody", "Error"),
        ("?limit=0", "Error"),
        ("/acme.web.broken/tools", "Error"),
    ):
        _, body = await api(bridge, path, key)
        schema_of(name, body)


async def test_tools_and_discovery_are_those_that_a_client_gets(bridge):
    key, _ = await made(bridge, "acme", "web")
    async with client(bridge, WEB, key, modern=True) as caller:
        tools = (await caller.request("tools/list", {}))["result"]["tools"]
        found = (await caller.request("server/discover", {}))["result"]

    assert (await api(bridge, f"/{WEB}/tools", key))[1]["tools"] == tools
    assert (await api(bridge, f"/{WEB}/discovery", key))[1]["discovery"] == found


async def test_the_tool_rule_holds_for_the_tools_of_v1():
    server = echo("files", tenant="acme", tools={"allow": ["e*"], "deny": ["env"]})
    async with Bridge([server]) as running:
        key, _ = await made(running, "acme")
        _, body = await api(running, "/acme.files/tools", key)
        assert {tool["name"] for tool in body["tools"]} == {"echo"}


async def test_pages_of_tools_are_the_servers_own():
    async with Bridge([echo("files", "--page", "5", tenant="acme")]) as running:
        key, _ = await made(running, "acme")
        names, cursor = [], ""
        while cursor is not None:
            query = f"?cursor={cursor}" if cursor else ""
            _, body = await api(running, f"/acme.files/tools{query}", key)
            assert len(body["tools"]) <= 5
            names += [tool["name"] for tool in body["tools"]]
            cursor = body["next_cursor"]
        async with running.modern("acme.files") as caller:
            assert names == await caller.tools()


async def test_the_catalogue_comes_in_pages_that_miss_nothing(bridge):
    key, _ = await made(bridge, "acme", roles=[Role.SECURITY_OFFICER])
    whole = await listed(bridge, key)
    for limit in (1, 3, 100):
        found, cursor = [], ""
        while cursor is not None:
            more = f"&cursor={cursor}" if cursor else ""
            _, body = await api(bridge, f"?limit={limit}{more}", key)
            assert len(body["servers"]) <= limit
            found += [server["id"] for server in body["servers"]]
            cursor = body["next_cursor"]
        assert found == sorted(whole)


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=101", "limit=-1", "limit=x", "limit=1&limit=2", "limit=", "limit=0100000",
     "limit=%D9%A1", "cursor=", "cursor=" + "x" * 1025, "page=2", "token=x"],
)  # fmt: skip
async def test_a_query_that_is_not_allowed_is_400(bridge, query):
    key, _ = await made(bridge, "acme")

    assert (await api(bridge, f"?{query}", key))[0] == 400


async def test_a_server_that_cannot_be_asked_is_told_and_a_wrong_method_has_its_allow(bridge):
    key, _ = await made(bridge, "acme", "web")

    # The breaker lets a start be tried from time to time, which fails.
    codes = {
        "broken": {(503, "breaker_open"), (502, "start_failed")},
        "stopped": {(503, "stopped_by_operator")},
        "disabled": {(503, "disabled")},
    }
    for name, allowed in codes.items():
        status, body = await api(bridge, f"/acme.web.{name}/tools", key)
        assert (status, body["error"]["data"]["code"]) in allowed
    for name in ("stopped", "disabled"):
        assert (await api(bridge, f"/acme.web.{name}/status", key))[1]["state"] == name
    response = await get(bridge, f"/v1/servers/{WEB}", key, method="PUT")
    assert (response.status, response.header("Allow")) == (405, "GET, DELETE")
    assert (await get(bridge, "/v1/nothing", key)).status == 404


# ---- delete ----


async def test_delete_of_sessions_ends_the_callers_own_only(bridge):
    mine, _ = await made(bridge, "acme", "web")
    others, _ = await made(bridge, "acme", "web")
    async with client(bridge, WEB, mine) as first, client(bridge, WEB, others) as second:
        stream = await first.listen()
        status, body = await api(bridge, f"/{WEB}/sessions", mine, method="DELETE")

        assert (status, body) == (200, {"id": WEB, "ended": 1})
        assert await stream.event() is None
        assert (await first.send(first.call_of("echo", {}))).status == 404
        assert await second.text("echo", text="on") == "on"
        await stream.close()


@pytest.mark.parametrize("role", [Role.MEMBER, Role.SECURITY_OFFICER])
async def test_only_a_tenant_admin_takes_a_server_out_of_service(bridge, role):
    key, _ = await made(bridge, "acme", "shop", roles=[role])

    status, body = await api(bridge, f"/{SHOP}", key, method="DELETE")

    assert (status, body["error"]["data"]["code"]) == (403, "role_required")
    async with bridge.modern(SHOP) as caller:
        assert await caller.text("echo", text="served") == "served"


async def test_delete_takes_a_server_out_of_service_until_an_operator_starts_it(bridge):
    key, _ = await made(bridge, "acme", "shop", roles=[Role.TENANT_ADMIN])
    async with bridge.modern(SHOP) as caller:
        assert await caller.text("echo", text="before") == "before"

        status, body = await api(bridge, f"/{SHOP}", key, method="DELETE")

        assert (status, body["id"]) == (200, SHOP)
        await bridge.in_state(SHOP, "stopped")
        refused = await caller.send(caller.call_of("echo", {}))
        assert refused.status == 503
        assert refused.messages[0]["error"]["data"]["code"] == "stopped_by_operator"
        assert SHOP in await listed(bridge, key)  # its definition stays
        await bridge.command(SHOP, "start")
        await eventually(lambda: bridge.in_state(SHOP, "ready"))
        assert await caller.text("echo", text="after") == "after"


async def test_an_admin_of_one_project_does_not_stop_what_all_share(bridge):
    bound, _ = await made(bridge, "acme", "web", roles=[Role.TENANT_ADMIN])

    status, body = await api(bridge, f"/{SHARED}", bound, method="DELETE")

    assert (status, body["error"]["data"]["code"]) == (403, "role_required")
    assert await bridge.state(SHARED) != "stopped"


async def test_the_document_needs_no_key_and_names_every_route(bridge):
    response = await get(bridge, "/v1/openapi.json", None)
    document = json.loads(response.body)

    assert response.status == 200
    assert document["openapi"] == "3.1.0"
    assert {(path, method) for path, its in document["paths"].items() for method in its} == {
        ("/v1/openapi.json", "get"),
        ("/v1/servers", "get"),
        ("/v1/servers/{id}", "get"),
        ("/v1/servers/{id}", "delete"),
        ("/v1/servers/{id}/status", "get"),
        ("/v1/servers/{id}/discovery", "get"),
        ("/v1/servers/{id}/tools", "get"),
        ("/v1/servers/{id}/sessions", "delete"),
    }
