"""Messages of one era in the words of the other."""

import json

import pytest

from autobot_mcp_bridge.model.versions import META_SUBSCRIPTION
from autobot_mcp_bridge.sessions.dialects import taggable

CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


@pytest.mark.parametrize(
    ("params", "kept", "meta"),
    [
        (None, {}, {}),
        ([], {}, {}),
        ({"_meta": {META_SUBSCRIPTION: 7, "a": 0}, "b": "0}}}"}, {"b": "0}}}"}, {"a": 0}),
    ],
)
@pytest.mark.parametrize("identifier", [0, "0", None])
def test_a_change_carries_the_id_that_its_listener_listens_by(params, kept, meta, identifier):
    start, end = taggable({"params": params, **CHANGED})
    told = json.loads(start + json.dumps(identifier).encode() + end)
    meta = {**meta, META_SUBSCRIPTION: identifier}
    assert told == {**CHANGED, "params": {**kept, "_meta": meta}}
