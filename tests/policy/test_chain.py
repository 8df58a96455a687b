"""The one chain: its order, a test each pair of neighbours; the schema and the hooks in it."""

import asyncio
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
import pytest_asyncio

from autobot_mcp_bridge.policy.chain import STEPS
from support.bridge import Bridge
from support.client import answer_to, code_of
from support.extensions import install
from support.policed import calls, manifest, module, policed, refused_call
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGE = Path(__file__).parents[2] / "ARCHITECTURE.md"
# Records show arguments, and refusals stand in the log, too: what else does not is looked for here.
NO_ARGS = {"audit": {"args": False}}
LIMITS = {"notes_write-note": "1/hour"}


def hooks(*names, **settings):
    return [{"name": name, **settings} for name in names]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge(tmp_path_factory):
    base = tmp_path_factory.mktemp("agents")
    scope = {
        "tools": ["read_note", "write-note"],
        "arguments": ["path"],
        "strategy": "prefix",
        "config": {"base_path": str(base)},
    }
    rules = {
        "modules": {"notes": module(tool_denylist=["plain"], scopes=[scope])},
        "argument_filters": [{"name": "a", "pattern": "bad"}],
        "rate_limits": {"per_tool": LIMITS},
    }
    names = ("odd", "hooked", "slow", "open", "own", "paged")
    modules = {name: module() for name in names}
    servers = [
        policed("notes", hooks=hooks("picky", "spoil"), rates={"concurrent": 3}),
        policed("odd", agent={"type": "plain", "id": "one"}),
        policed("paged", "--pages", "2", agent={"type": "plain", "id": "one"}),
        policed("own", agent={"type": "plain", "id": "one"}, sessions="isolated"),
        policed(
            "hooked", hooks=[*hooks("sign", "second", "half"), *hooks("reads_loop", tools=["plain"])],
            agent={"type": "plain", "id": "one"},
        ),
        policed("free", hooks=hooks("spoil"), agent={}),
        policed("none", agent={}),
        *(
            policed(f"bad{number}", hooks=hooks(name, timeout="300ms", tools=["read_note"]), agent={})
            for number, name in enumerate(("hangs", "sleeps", "nothing", "unwritable"))
        ),
    ]  # fmt: skip
    env = install(tmp_path_factory.mktemp("site"))
    manifests = [manifest(**rules), manifest("plain", modules=modules)]
    async with Bridge(servers, env=env, manifests=manifests, host=NO_ARGS) as running:
        yield running


@pytest.fixture(params=["session", "modern"])
def make(request, bridge):
    return getattr(bridge, request.param)


async def test_the_table_in_the_page_is_the_chain_of_the_code():
    rows = re.findall(
        r"^\| `(\w+)` \| (.+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    table = [
        (step.name, step.says, ", ".join(f"`{c.word}`" for c in step.refuses)) for step in STEPS
    ]

    assert [row for row in rows if row[0] in {step.name for step in STEPS}] == table


# For each step what is wrong with a call of read_note, or of another tool, and the word.
WRONG = {
    "targets": {},
    "hooks": {"text": "boom"},
    "schema": {"size": "no number"},
    "scopes": {"path": "/etc/passwd"},
    "filters": {"text": "bad"},
}
WORDS = {step.name: {cause.word for cause in step.refuses} for step in STEPS}
# Drift has tests of its own, with servers that change their tools (test_drift.py).
ORDER = [step.name for step in STEPS if step.name != "drift"]
PAIRS = list(pairwise(ORDER))


async def outcome(client, method, params):
    message = client.request_of(method, params, 9)
    answer = answer_to(await client.send(message), 9)
    return code_of(answer) if "error" in answer else "ok"


async def call(client, tool, **arguments):
    return await outcome(client, "tools/call", {"name": tool, "arguments": arguments})


@pytest.mark.requirement("SM-56", "SM-F11")
@pytest.mark.parametrize(("first", "then"), PAIRS[1:5])
async def test_of_two_steps_that_refuse_the_first_one_tells(make, first, then):
    tool = "plain" if first == "targets" else "read_note"
    right = {"path": "a", "text": "x"}
    async with make("notes") as client:
        assert await call(client, "read_note", **right) == "ok"
        both = {**right, **WRONG[then], **WRONG[first]}
        if {first, then} == {"hooks", "filters"}:
            both["text"] = "boom bad"
        assert await call(client, tool, **both) in WORDS[first]
        assert await call(client, "read_note", **{**right, **WRONG[then]}) in WORDS[then]


@pytest.mark.requirement("D4")
async def test_a_method_is_judged_before_what_it_names(make):
    async with make("notes") as client:
        assert await outcome(client, "tools/callx", {"name": "plain"}) == "method_denied"
        assert await outcome(client, "tools/call", {"name": "plain"}) == "tool_denied"


@pytest.mark.requirement("SM-F14")
async def test_filters_come_before_rates_and_rates_before_places(bridge):
    async with bridge.session("notes") as client:
        right = {"path": "a", "text": "x"}
        assert await call(client, "write-note", path="a", text="bad") == "arguments_refused"
        assert await call(client, "write-note", **right) == "ok"  # what was refused has not counted
        assert await call(client, "write-note", path="a", text="bad") == "arguments_refused"
        assert await call(client, "write-note", **right) == "rate_limited"
        waiting = [
            asyncio.ensure_future(client.send(client.call_of("wait", {}, number)))
            for number in (1, 2, 3)
        ]

        async def all_open():
            return (await bridge.server("notes"))["open_calls"] == 3

        await eventually(all_open, what="calls in flight")
        assert await call(client, "write-note", **right) == "rate_limited"
        assert await call(client, "read_note", **right) == "too_many_calls"
        for number, task in enumerate(waiting, 1):
            await client.notify("notifications/cancelled", {"requestId": number})
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


# ---- schema ----


@pytest.mark.requirement("SM-49")
@pytest.mark.parametrize("instance", ["odd", "own", "paged"])
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"size": "sentinel-4711"}, "size"),
        ({"size": 11}, "size"),
        ({"kind": "sentinel-4711"}, "kind"),
        ({"paths": ["a", 4711]}, "paths"),
        ({"text": "sentinel-4711" * 10_000}, "text"),
    ],
)
async def test_arguments_that_do_not_fit_are_named_and_their_values_are_not(
    bridge, make, instance, arguments, name
):
    async with make(instance) as client:
        error = await refused_call(client, "schema_mismatch", "read_note", arguments)

    assert error["code"] == -32602
    assert error["message"].endswith(f": {name}")
    assert "4711" not in json.dumps(error)
    assert "sentinel-4711" not in bridge.log()


async def test_a_missing_argument_is_named(make):
    async with make("odd") as client:
        error = await refused_call(client, "schema_mismatch", "write-note", {"path": "a"})
        assert error["message"].endswith(": text")


async def test_arguments_that_fit_reach_the_server_as_they_are(make):
    right = {"size": 10, "kind": "a", "paths": [], "deep": {"x": None, "y": [1.5]}}
    async with make("odd") as client:
        assert json.loads(await client.text("read_note", **right)) == right
        assert await client.text("plain", whatever=None) == '{"whatever": null}'


@pytest.mark.parametrize("arguments", [[], "x", 5, [{"a": 1}], True])
async def test_arguments_that_are_no_object_are_refused(make, arguments):
    async with make("odd") as client:
        word = await outcome(client, "tools/call", {"name": "plain", "arguments": arguments})
        assert word == "schema_mismatch"


async def test_no_arguments_are_an_empty_object(make):
    async with make("odd") as client:
        assert await outcome(client, "tools/call", {"name": "plain"}) == "ok"
        params = {"name": "write-note"}
        assert await outcome(client, "tools/call", params) == "schema_mismatch"


@pytest.mark.parametrize("tool", ["odd", "far", "costly"])
async def test_a_schema_that_cannot_be_used_closes_its_tool_and_no_other(make, tool):
    async with make("odd") as client:
        await refused_call(client, "schema_unusable", tool, {})
        assert await call(client, "read_note") == "ok"


async def test_without_a_manifest_or_a_hook_a_schema_is_the_server_s_own_affair(make):
    async with make("none") as client:
        assert await call(client, "read_note", size="no number") == "ok"
        assert await call(client, "costly") == "ok"


# ---- hooks ----


@pytest.mark.requirement("SM-55")
async def test_hooks_change_arguments_in_their_order_and_what_they_make_reaches_the_server(make):
    async with make("hooked") as client:
        found = json.loads(await client.text("read_note", text="x"))
        assert found["text"] == "half way"
        found = json.loads(await client.text("write-note", text="x"))
        assert found["text"] == "half way"
        assert await client.text("plain", text="x") == '{"text": "in a thread"}'


async def test_each_hook_gets_what_the_one_before_has_made(bridge):
    async with bridge.session("hooked") as client:
        assert await call(client, "read_note", text="x", kind="a") == "hook_failed"


async def test_what_a_hook_changes_is_validated(make):
    for instance in ("notes", "free"):
        async with make(instance) as client:
            arguments = {"path": "a", "text": "spoil"}
            assert await call(client, "read_note", **arguments) == "schema_mismatch"


@pytest.mark.parametrize("instance", ["bad0", "bad1", "bad2", "bad3"])
async def test_a_hook_that_fails_in_any_way_stops_the_call(bridge, make, instance):
    async with make(instance) as client:
        error = await refused_call(client, "hook_failed", "read_note", {"text": "s3cret-4711"})
        assert error["message"] == "a hook stopped the call"
        assert await call(client, "plain") == "ok"  # the hook is not for this one
    assert "s3cret-4711" not in bridge.log()
    assert f"{instance}: hook " in bridge.log()


async def test_an_exception_of_a_hook_quotes_nothing(bridge):
    async with bridge.session("notes") as client:
        error = await refused_call(
            client, "hook_failed", "read_note", {"path": "a", "text": "boom s3cret-4712"}
        )
        assert (await calls(client)) == (await calls(client))
    assert "4712" not in json.dumps(error) + bridge.log()
    assert "hook picky stopped a call of 'read_note': ValueError" in bridge.log()


async def test_hooks_that_never_return_hold_up_nobody_for_long(bridge):
    async with bridge.modern("bad0") as client, bridge.modern("free") as other:
        many = [call(client, "read_note", text=str(number)) for number in range(30)]
        found = await asyncio.gather(*many, call(other, "read_note", text="x"))
        assert set(found[:-1]) == {"hook_failed"}
        assert "have not returned" in bridge.log()
