"""A manifest decides for its agent type what there is: the real proxy, a real server."""

import json

import pytest
import pytest_asyncio

from servers.policed_tools import TOOLS
from support.bridge import Bridge
from support.client import code_of
from support.policed import calls, manifest, module, policed, refused, refused_call
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

LISTED = module(
    tool_allowlist=["*"],
    tool_denylist=["plain", "far"],
    resource_allowlist=["note:*"],
    prompt_allowlist=["greet"],
)
READ = module(mode="read")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    servers = [
        policed("notes", agent={"type": "listed", "id": "one"}),
        policed("pages", "--pages", "2", agent={"type": "reader", "id": "one"}),
        policed("elsewhere", agent={"type": "listed", "id": "one"}),
        policed("unknown", agent={"type": "nobody"}),
        policed("free", agent={}),
        policed("bare", agent={"type": "bare", "id": "one"}),
        policed("own", sessions="isolated", agent={"type": "listed", "id": "one"}),
    ]
    manifests = [
        manifest("listed", modules={"notes": LISTED, "own": LISTED}),
        manifest("reader", modules={"pages": READ}),
        manifest("bare", modules={"bare": module()}),
    ]
    async with Bridge(servers, manifests=manifests) as running:
        yield running


@pytest.fixture(params=["session", "modern"])
def make(request, bridge):
    return getattr(bridge, request.param)


@pytest.mark.parametrize("instance", ["notes", "own"])
async def test_what_a_manifest_denies_is_not_listed_and_not_called(make, instance):
    async with make(instance) as client:
        names = await client.tools()
        assert "plain" not in names and "far" not in names and "write-note" in names
        assert await client.text("read_note", text="x") == '{"text": "x"}'
        for name in ("plain", "far", "no-such"):
            error = await refused_call(client, "tool_denied", name, {})
            assert (error["status"], error["message"]) == (200, f"Unknown tool: {name}")


@pytest.mark.requirement("SM-25")
async def test_mode_read_leaves_the_tools_that_say_they_only_read(make):
    async with make("pages") as client:
        assert sorted(await client.tools()) == ["read_note", "state"]
        assert await client.text("read_note", text="x") == '{"text": "x"}'
        for name in ("write-note", "plain"):
            await refused_call(client, "tool_denied", name, {"text": "x"})


@pytest.mark.requirement("SM-25")
async def test_a_server_that_the_manifest_does_not_name_shows_nothing(make):
    async with make("elsewhere") as client:
        assert await client.tools() == []
        assert code_of(await client.call("read_note", {})) == "tool_denied"


async def test_an_agent_type_without_a_manifest_may_do_nothing(make):
    async with make("unknown") as client:
        assert await client.tools() == []
        assert code_of(await client.call("state", {})) == "tool_denied"


async def test_a_caller_that_is_no_agent_has_what_the_server_s_own_rule_gives(make):
    async with make("free") as client:
        assert len(await client.tools()) == 9
        assert await client.text("plain", x=1) == '{"x": 1}'


async def test_resources_and_prompts_pass_only_where_the_manifest_names_them(make):
    async with make("notes") as client:
        found = (await client.request("resources/list", {}))["result"]["resources"]
        assert [each["uri"] for each in found] == ["note:///one"]
        found = (await client.request("prompts/list", {}))["result"]["prompts"]
        assert [each["name"] for each in found] == ["greet"]
        assert "result" in await client.request("resources/read", {"uri": "note:///one"})
        assert "result" in await client.request("prompts/get", {"name": "greet"})
        await refused(client, "resource_denied", "resources/read", {"uri": "secret:///one"})
        await refused(client, "prompt_denied", "prompts/get", {"name": "secret"})
        argument = {"name": "a", "value": "b"}
        for word, reference in (
            ("prompt_denied", {"type": "ref/prompt", "name": "secret"}),
            ("resource_denied", {"type": "ref/resource", "uri": "secret:///{x}"}),
        ):
            params = {"ref": reference, "argument": argument}
            await refused(client, word, "completion/complete", params)
        params = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": argument}
        assert "result" in await client.request("completion/complete", params)


async def test_a_manifest_without_lists_lets_tools_through_and_nothing_else(make):
    async with make("bare") as client:
        assert len(await client.tools()) == 9
        assert (await client.request("resources/list", {}))["result"]["resources"] == []
        await refused(client, "resource_denied", "resources/read", {"uri": "note:///one"})


async def test_a_subscription_is_judged_as_the_resource_is(bridge):
    async with bridge.session("notes") as session:
        await refused(session, "resource_denied", "resources/subscribe", {"uri": "secret:///one"})
        answer = await session.request("resources/subscribe", {"uri": "note:///one"})
        assert answer["error"]["code"] == -32601  # the server's own word: it has been asked


@pytest.mark.requirement("SM-F1", "SM-F2")
@pytest.mark.parametrize("instance", ["free", "bare", "pages"])
async def test_descriptors_are_the_server_s_own_value_for_value(bridge, make, instance):
    async with make(instance) as client:
        listed = (await client.request("tools/list", {}))["result"]["tools"]
    own = {tool["name"]: tool for tool in TOOLS}
    assert listed
    for tool in listed:
        assert json.dumps(tool) == json.dumps(own[tool["name"]])


@pytest.mark.requirement("SM-F17")
async def test_a_change_counts_without_a_restart_and_a_mistake_keeps_the_last_good_one():
    servers = [policed("notes"), policed("other", agent={"type": "second", "id": "one"})]
    manifests = [manifest(), manifest("second", modules={"other": module()})]
    async with Bridge(servers, manifests=manifests) as bridge:
        async with bridge.session("notes") as session, bridge.session("other") as second:
            assert await session.text("plain") == "{}"
            narrow = manifest(modules={"notes": module(tool_denylist=["plain"])})
            bridge.write_manifest("research.yml", narrow)

            async def denied():
                return "error" in await session.call("plain")

            await eventually(denied, what="the new manifest")
            secret = "hunter2-is-secret"
            bridge.write_manifest("research.yml", f"agent_type: research\nmodules: {secret}\n")
            bridge.write_manifest(
                "second.yml", manifest("second", modules={"other": module(tool_denylist=["plain"])})
            )

            async def denied_too():
                return "error" in await second.call("plain")

            await eventually(denied_too, what="the other file's change, beside the mistake")
            assert await denied()
            assert await session.text("read_note") == "{}"
            shown = (await bridge.health(operator=True)).body.decode()
            assert "research.yml: $.modules" in shown and secret not in shown
            bridge.write_manifest("research.yml", manifest())

            async def allowed():
                return "result" in await session.call("plain")

            await eventually(allowed, what="the mended manifest")
            (bridge.config_dir / "manifests.d" / "second.yml").unlink()

            async def nothing():
                return await second.tools() == []

            await eventually(nothing, what="the agent type without a manifest")
        assert secret not in bridge.log()


@pytest.mark.requirement("SM-12", "SM-F8")
async def test_a_variable_is_expanded_after_parsing_and_its_value_stands_nowhere():
    value = "read_*, plain: {a: [b #"
    text = (
        "# a comment may say ${NO_SUCH_VARIABLE}\nagent_type: research\n"
        "modules:\n  notes:\n    type: mcp_proxy\n    config:\n"
        "      tool_allowlist:\n      - state\n      - '${ALLOWED}'\n      - ${SECOND}\n"
    )
    env = {"ALLOWED": value, "SECOND": "plain"}
    async with Bridge([policed()], env=env, manifests=[manifest()]) as bridge:
        bridge.write_manifest("research.yml", text)
        async with bridge.session("notes") as session:

            async def names():
                return await session.tools() == ["plain", "state"]

            await eventually(names, what="the tools that the variables name")
            assert (await calls(session)) == []
        assert value not in bridge.log()
