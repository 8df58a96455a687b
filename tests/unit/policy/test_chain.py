"""Whatever a body says, the chain answers with an admission or a refusal, and nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.jsonrpc import parse
from autobot_mcp_bridge.model.errors import CallError
from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.policy.asked import Asked
from autobot_mcp_bridge.policy.chain import Chain
from autobot_mcp_bridge.policy.descriptor import Descriptor
from autobot_mcp_bridge.policy.host import PolicyHost
from autobot_mcp_bridge.policy.manifest.check import check
from autobot_mcp_bridge.policy.manifest.load import Manifests
from autobot_mcp_bridge.policy.methods import HANDSHAKE_REQUESTS, MODERN_REQUESTS
from autobot_mcp_bridge.policy.principals import Principal
from autobot_mcp_bridge.policy.who import who_of
from servers.policed_tools import TOOLS

MANIFEST = {
    "agent_type": "research",
    "modules": {
        "notes": {
            "type": "mcp_proxy",
            "config": {
                "tool_denylist": ["plain"],
                "resource_allowlist": ["note:*"],
                "scopes": [{"arguments": ["path"], "tools": ["w*"], "strategy": "namespace"}],
            },
        }
    },
    "argument_filters": [{"name": "a", "pattern": "bad", "decode": ["base64", "url"]}],
    "response_filters": [{"name": "b", "pattern": "tok_[a-z]+", "action": "redact"}],
    "rate_limits": {"global": "999999/second"},
}
SPEC = ServerSpec.model_validate(
    {"name": "notes", "command": ["x"], "agent": {"type": "research", "id": "one"}}
)
WHO = who_of(SPEC, Principal("d" * 64, "notes"))
NAMES = [tool["name"] for tool in TOOLS]


async def describe(name):
    return next((Descriptor(tool) for tool in TOOLS if tool["name"] == name), None)


@pytest.fixture(scope="module")
def chain():
    host = PolicyHost(HostSettings())
    found, problems = check(MANIFEST, "m.yml", shared=False)
    assert not problems
    host.put(Manifests({"research": found}, present=True))
    return Chain(SPEC, host)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)  # fmt: skip
METHODS = st.sampled_from(sorted(HANDSHAKE_REQUESTS | MODERN_REQUESTS | {"tasks/result", "x/y"}))
PARAMS = st.dictionaries(
    st.sampled_from(["name", "arguments", "uri", "ref", "argument", "context", "notifications"]),
    JSON | st.sampled_from(NAMES) | st.fixed_dictionaries({"path": JSON, "text": JSON}),
)


@given(METHODS, PARAMS)
async def test_no_body_breaks_the_chain(chain, method, params):
    asked = Asked(WHO, method, params, HANDSHAKE_REQUESTS | MODERN_REQUESTS, describe)
    try:
        admission = await chain.admit(asked)
    except CallError:
        return
    admission.give_up()
    assert asked.tool != "plain"


@given(METHODS, JSON, st.booleans())
async def test_no_answer_breaks_the_way_back(chain, method, body, is_error):
    asked = Asked(WHO, method, {"name": "state", "uri": "note:x"}, HANDSHAKE_REQUESTS, describe)
    try:
        admission = await chain.admit(asked)
    except CallError:
        return
    inner = (
        {"code": 1, "message": "tok_abc", "data": body} if is_error else {"x": body, "tools": body}
    )
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "error" if is_error else "result": inner})
    answer = parse(line.encode())
    try:
        found = admission.finished(answer)
    except CallError:
        return
    assert json.loads(found.encode(b"7"))["id"] == 7
    if admission.finish is not None and method == "tools/call":
        assert b"tok_abc" not in found.encode(b"7")


@given(JSON)
async def test_an_answer_without_a_match_leaves_byte_for_byte(chain, body):
    params = {"name": "state", "arguments": {}}
    asked = Asked(WHO, "tools/call", params, HANDSHAKE_REQUESTS, describe)
    admission = await chain.admit(asked)
    answer = parse(b'{"jsonrpc" : "2.0","id":1,"result":{"x":%b, "y" : 1.50}}' % jsonrpc.dumps(0))
    assert admission.finished(answer) is answer
    line = b'{"jsonrpc" : "2.0","id":1,"result":{"x":' + json.dumps(body).encode() + b"}}"
    answer = parse(line)
    if answer is not None and b"tok_" not in line and type(answer).__name__ == "Answer":
        assert admission.finished(answer) is answer
