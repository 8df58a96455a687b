"""What stands in arguments and answers: blocked, told or taken out, by the real proxy."""

import base64
import json

import pytest
import pytest_asyncio

from support.bridge import Bridge
from support.client import code_of
from support.policed import manifest, module, policed, refused, refused_call

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET = "AKIAABCDEFGHIJKLMNOP"
RULES = {
    "modules": {
        name: module(resource_allowlist=["*"], prompt_allowlist=["*"], max_binary_bytes=2000)
        for name in ("notes", "own")
    },
    "argument_filters": [
        {"name": "key-rule", "pattern": "AKIA[0-9A-Z]{16}", "decode": ["url", "base64"]},
        {"name": "path-rule", "pattern": r"\.\./", "fields": ["path"]},
        {"name": "warn-rule", "pattern": "(?i)mild", "action": "warn"},
        {"name": "blind-rule", "pattern": "drop table", "case_insensitive": True},
    ],
    "response_filters": [
        {"name": "block-rule", "pattern": "TOP-SECRET", "action": "block", "decode": ["base64"]},
        {"name": "redact-rule", "pattern": "tok_[a-z]+", "action": "redact", "decode": ["base64"]},
        {"name": "tell-rule", "pattern": "curious"},
    ],
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    servers = [policed("notes"), policed("own", sessions="isolated"), policed("free", agent={})]
    async with Bridge(servers, manifests=[manifest(**RULES)]) as running:
        yield running


@pytest.fixture(params=["session", "modern"])
def make(request, bridge):
    return getattr(bridge, request.param)


def b64(text):
    return base64.b64encode(text.encode()).decode()


@pytest.mark.requirement("SM-19", "SM-58")
@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"text": f"before {SECRET} after"}, "key-rule"),
        ({"text": SECRET.replace("A", "%41")}, "key-rule"),
        ({"text": b64(f"x {SECRET}")}, "key-rule"),
        ({"text": b64(f"x {SECRET}").rstrip("=")}, "key-rule"),
        ({"text": b64(f"x {SECRET}").replace("=", "%3D")}, "key-rule"),
        ({"deep": {"a": [{"b": SECRET}]}}, "key-rule"),
        ({"deep": {SECRET: 1}}, "key-rule"),
        ({"path": "a/../b"}, "path-rule"),
        ({"text": "DROP Table x"}, "blind-rule"),
    ],
)
async def test_an_argument_that_matches_is_blocked_and_the_error_names_neither(
    bridge, make, arguments, rule
):
    async with make("notes") as client:
        error = await refused_call(client, "arguments_refused", "read_note", arguments)

    assert error["code"] == -32602
    assert error["message"] == "the arguments are not allowed"
    assert rule not in json.dumps(error)
    log = bridge.log()
    assert f"matches filter '{rule}': block" in log
    assert SECRET not in log


@pytest.mark.parametrize(
    "arguments",
    [
        {"text": "a/../b"},  # the rule is about path
        {"text": b64("x" * 66_000 + SECRET)},  # decodes to more than is looked at
        {"text": "AKIA0"},
        {"size": 5},
    ],
)
async def test_an_argument_that_does_not_match_passes_as_it_is(make, arguments):
    async with make("notes") as client:
        assert json.loads(await client.text("read_note", **arguments)) == arguments


async def test_a_filter_that_only_tells_lets_the_call_through(bridge, make):
    async with make("notes") as client:
        assert await client.text("read_note", text="Mild") == '{"text": "Mild"}'
    assert "argument 'text' (raw) matches filter 'warn-rule': warn" in bridge.log()


async def test_uris_prompts_and_completions_are_looked_at_as_well(make):
    async with make("notes") as client:
        word = "arguments_refused"
        await refused(client, word, "resources/read", {"uri": f"note:///{SECRET}"})
        prompt = {"name": "greet", "arguments": {"a": SECRET}}
        await refused(client, word, "prompts/get", prompt)
        reference = {"type": "ref/prompt", "name": "greet"}
        asked = {"ref": reference, "argument": {"name": "a", "value": SECRET}}
        await refused(client, word, "completion/complete", asked)


async def test_without_a_manifest_nothing_is_filtered(bridge):
    async with bridge.session("free") as client:
        assert SECRET in await client.text("read_note", text=SECRET)
        answer = await client.call("answer", {"result": {"content": [], "x": "tok_abc"}})
        assert answer["result"]["x"] == "tok_abc"


async def answered(client, result):
    return await client.call("answer", {"result": result})


@pytest.mark.requirement("SM-20", "SM-59")
@pytest.mark.parametrize("instance", ["notes", "own"])
async def test_what_matches_is_taken_out_of_every_text_of_a_result(make, instance):
    result = {
        "content": [
            {"type": "text", "text": "a tok_abc b tok_def", "_meta": {"x": "tok_meta"}},
            {"type": "resource_link", "uri": "x://tok_uri", "name": "tok_name"},
            {"type": "resource", "resource": {"uri": "x://y", "text": "tok_text"}},
            {"type": "text", "text": b64("hidden tok_abc")},
        ],
        "structuredContent": {"deep": [["tok_deep"]], "n": 1.50, "tok_key": None},
        "vendor": "tok_vendor",
        "isError": True,
    }
    async with make(instance) as client:
        found = (await answered(client, result))["result"]

    assert "tok_" not in json.dumps(found)
    assert found["content"][0]["text"] == "a [REDACTED] b [REDACTED]"
    assert found["content"][3]["text"] == "[REDACTED]"  # it cannot be cut out of what hides it
    assert found["structuredContent"]["n"] == 1.5
    assert found["isError"] is True


@pytest.mark.requirement("SM-F4")
async def test_an_error_is_looked_through_as_a_result_is(make):
    async with make("notes") as client:
        error = (await client.call("answer", {"error": "failed with tok_abc"}))["error"]
        assert error["message"] == "failed with [REDACTED]"
        assert error["data"] == {"also": "failed with [REDACTED]"}
        assert code_of(await client.call("answer", {"error": "TOP-SECRET"})) == "response_blocked"


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "TOP-SECRET"},
        {"type": "text", "text": b64("TOP-SECRET")},
        {"type": "resource", "resource": {"uri": "x", "mimeType": "text/plain", "blob": "VE9Q"}},
    ],
)
async def test_an_answer_that_is_blocked_says_nothing_of_itself(bridge, make, block):
    if "resource" in block:
        inner = {**block["resource"], "blob": b64("a TOP-SECRET")}
        block = {**block, "resource": inner}
    async with make("notes") as client:
        answer = await answered(client, {"content": [block]})

    assert code_of(answer) == "response_blocked"
    assert "SECRET" not in json.dumps(answer)
    assert "matches filter 'block-rule': block" in bridge.log()


@pytest.mark.parametrize(
    ("kind", "blob", "passes"),
    [
        ("text/plain", b64("tok_abc"), False),  # nothing can be taken out of it
        ("application/json; charset=utf-8", b64("tok_abc"), False),
        ("text/plain", "no base64!", False),
        ("text/plain", b64("harmless"), True),
        ("application/octet-stream", b64("tok_abc"), True),
    ],
)
async def test_a_text_that_comes_as_a_blob_is_looked_at(make, kind, blob, passes):
    block = {"type": "resource", "resource": {"uri": "x://y", "mimeType": kind, "blob": blob}}
    async with make("notes") as client:
        answer = await answered(client, {"content": [block]})

    assert ("result" in answer) is passes
    assert not passes or answer["result"]["content"] == [block]


async def test_payloads_of_images_are_not_touched_but_words_in_their_place_are(make):
    image = {"type": "image", "mimeType": "image/png", "data": b64("tok_abc TOP-SECRET")}
    words = {"type": "image", "mimeType": "image/png", "data": "words: tok_abc"}
    async with make("notes") as client:
        found = (await answered(client, {"content": [image, words]}))["result"]["content"]

    assert found[0] == image
    assert found[1]["data"] == "words: [REDACTED]"


async def test_a_filter_that_only_tells_changes_nothing_of_an_answer(bridge, make):
    result = {"content": [{"type": "text", "text": "curious"}], "z": 1, "a": {"b": [1.0]}}
    async with make("notes") as client:
        found = (await answered(client, result))["result"]
    assert {name: found[name] for name in result} == result
    assert "matches filter 'tell-rule': warn" in bridge.log()


@pytest.mark.requirement("SM-53", "SM-F23")
@pytest.mark.parametrize("instance", ["notes", "own"])
async def test_a_binary_block_above_the_cap_becomes_a_stub_and_the_others_stay(
    bridge, make, instance
):
    async with make(instance) as client:
        small = (await client.call("answer", {"bytes": 300}))["result"]["content"]
        large = (await client.call("answer", {"bytes": 3000}))["result"]["content"]

    assert [block["type"] for block in small] == ["text", "image"]
    assert large[0] == {"type": "text", "text": "beside"}
    assert large[1]["type"] == "text"
    assert (
        "image of image/png left out" in large[1]["text"] and "allowed are 2000" in large[1]["text"]
    )
    assert b64("\xff" * 30) not in bridge.log()


async def test_a_large_answer_is_looked_through_to_its_end(make):
    text = "x" * 200_000 + " tok_abc"
    async with make("notes") as client:
        found = (await answered(client, {"content": [{"type": "text", "text": text}]}))["result"]
    assert found["content"][0]["text"].endswith("x [REDACTED]")
