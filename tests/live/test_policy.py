"""What is listed is what may be called; secrets stay where they belong (NV-03, NV-12; F4, D4)."""

import base64
import json

import pytest
import pytest_asyncio

from support import proc
from support.bridge import Bridge
from support.client import answer_to, code_of
from support.fakes import echo

pytestmark = pytest.mark.asyncio(loop_scope="module")

NAMES = "a,ab,b,A,a-1,read_one,read_secret"
RULES = {"tools": {"allow": ["a", "read_*", "state"], "deny": ["read_s*"]}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    servers = [
        echo("files", "--tools", NAMES, **RULES),
        echo("pages", "--tools", NAMES, "--page", "2", **RULES),
        echo("open", methods={"allow": ["vendor/*"]}),
    ]
    async with Bridge(servers) as running:
        yield running


@pytest.fixture(params=["session", "modern"])
def make(request, bridge):
    return getattr(bridge, request.param)


@pytest.mark.requirement("NV-12")
@pytest.mark.parametrize("instance", ["files", "pages"])
async def test_only_allowed_tools_are_listed_over_all_pages(make, instance):
    async with make(instance) as client:
        assert sorted(await client.tools()) == ["a", "read_one", "state"]


@pytest.mark.parametrize("name", ["a", "read_one"])
async def test_a_listed_tool_may_be_called(make, name):
    async with make("files") as client:
        assert await client.text(name) == name


@pytest.mark.requirement("NV-12")
@pytest.mark.parametrize(
    "name",
    ["b", "A", "ab", " a", "a ", "a\u0000", "a\n", "", "*", "read_secret", "\u0430"],
)  # the last one is a Cyrillic letter
async def test_a_tool_that_is_not_listed_is_denied_before_the_server_sees_it(make, name):
    async with make("files") as client:
        before = json.loads(await client.text("state"))["seen"]["tools/call"]
        message = client.call_of(name, {}, 1)
        headers = {"Mcp-Name": encoded(name)} if "Mcp-Name" in client.headers(message) else {}
        answer = answer_to(await client.send(message, headers=headers), 1)
        assert answer["error"]["code"] == -32602
        assert code_of(answer) == "tool_denied"
        assert json.loads(await client.text("state"))["seen"]["tools/call"] == before + 1


def encoded(name):
    return "=?base64?" + base64.b64encode(name.encode()).decode() + "?="


@pytest.mark.parametrize("name", [None, 5, ["a"], {"a": 1}, True])
async def test_a_tool_name_that_is_no_text_is_denied(bridge, name):
    async with bridge.session("files") as session:
        answer = answer_to(await session.send(session.call_of(name, {}, 1)), 1)
        assert answer["error"]["code"] == -32602


async def test_a_name_given_twice_is_judged_as_the_server_will_read_it(bridge):
    """Two readers of one body must not see two tools."""
    async with bridge.session("files") as session:
        for names in ('"name":"a","name":"b"', '"name":"b","name":"a"'):
            body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{names}}}}}'
            response = await session.send(body=body.encode())
            message = response.messages[0]
            if "result" in message:
                assert message["result"]["content"][0]["text"] == "a"


async def test_a_method_given_twice_does_not_slip_through(bridge):
    async with bridge.session("files") as session:
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"vendor/x","params":{}}'
        await session.send(body=body)
        assert "vendor/x" not in json.loads(await session.text("state"))["seen"]


@pytest.mark.requirement("D4")
@pytest.mark.parametrize(
    "method", ["no/such", "vendor/x", "Tools/Call", "rpc.discover", "", "tools/*"]
)
async def test_an_unknown_method_is_denied_before_the_server_sees_it(make, method):
    async with make("files") as client:
        answer = answer_to(await client.send(client.request_of(method, {}, 1)), 1)
        assert answer["error"]["code"] == -32601
        assert method not in json.loads(await client.text("state"))["seen"]


async def test_an_unknown_notification_is_accepted_and_not_passed_on(bridge):
    async with bridge.session("files") as session:
        assert (await session.notify("notifications/vendor")).status == 202
        assert "notifications/vendor" not in json.loads(await session.text("state"))["seen"]


@pytest.mark.requirement("D4")
async def test_a_method_of_the_configuration_passes(bridge):
    async with bridge.session("open") as session:
        answer = await session.request("vendor/thing", {"a": 1})
        # The fake does not know it: the refusal is its own.
        assert "vendor/thing" in answer["error"]["message"]
        assert json.loads(await session.text("state"))["seen"]["vendor/thing"] == 1


async def test_the_childs_environment_holds_no_token_and_nothing_of_the_hosts():
    secret = "host-secret-4711"
    async with Bridge([echo("files", env={"LOG": "x"})], env={"HOST_SECRET": secret}) as bridge:
        async with bridge.session("files") as session:
            seen = json.loads(await session.text("env"))
            assert seen["LOG"] == "x"
            text = json.dumps([seen, proc.environment(await bridge.server_pid("files"))])
            assert secret not in text
            assert bridge.token("files") not in text
            assert "PYTHONPATH" not in seen
            assert str(bridge.config_dir) not in text


@pytest.mark.requirement("F4")
async def test_a_token_never_reaches_the_server_nor_the_log():
    async with Bridge([echo("files")]) as bridge:
        token = bridge.token("files")
        async with bridge.session("files") as session:
            seen = await session.text("mirror", value=1)
            assert token not in seen
            assert token not in await session.text("state")
            # The log's redaction knows the form of a token, and not that of the other.
            query = f"?page=open-sesame&token={token}"
            refused = await session.send(
                session.call_of("pid", {}),
                target=session.target + query,
                headers={"Authorization": None},
            )
            assert refused.status == 401
        assert token not in bridge.log()
        assert "open-sesame" not in bridge.log()


async def test_the_servers_directory_is_its_own():
    servers = [echo("files"), echo("files", tenant="acme", project="web")]
    async with Bridge(servers) as bridge:
        for instance, where in (("files", "default/-/files"), ("acme.web.files", "acme/web/files")):
            async with bridge.session(instance) as session:
                seen = json.loads(await session.text("cwd"))
                assert seen["cwd"] == str(bridge.state_dir / where)
                assert seen["mode"] == 0o700
