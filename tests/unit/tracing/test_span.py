"""What a server is told of a call's trace, and what is emitted of it."""

import json

import pytest

from autobot_mcp_bridge.tracing.context import Context
from autobot_mcp_bridge.tracing.span import CallTrace, new_span

OWN = Context("1" * 32, "2" * 16, sampled=True, state="a=1", baggage="k=v")


@pytest.fixture
def emitted():
    return []


@pytest.fixture
def trace(emitted):
    return CallTrace(OWN, "", "tools/call x", {"k": "v", "n": 1}, emitted.append)


def named(emitted):
    return {span["kind"]: span for span in map(json.loads, emitted)}


def test_an_end_is_told_once(trace, emitted):
    trace.passes({"id": 1, "method": "tools/call"})
    trace.end("late", None)
    trace.end(None, 5)
    found = named(emitted)
    assert len(emitted) == 2 and set(found) == {2, 3}
    assert found[2]["status"] == found[3]["status"] == {"code": 2}
    assert found[3]["parentSpanId"] == found[2]["spanId"]
    assert {"key": "n", "value": {"intValue": "1"}} in found[2]["attributes"]


def test_what_the_proxy_answers_itself_has_no_exchange(trace, emitted):
    trace.passes({"id": 1, "method": "tools/list"})
    trace.here()
    trace.end(None, None)
    assert set(named(emitted)) == {2}
    assert "status" not in named(emitted)[2]


def test_a_start_after_the_end_is_of_nobody(trace, emitted):
    trace.end(None, None)
    with trace.starting():
        pass
    assert set(named(emitted)) == {2}


@pytest.mark.parametrize(
    "message", [{"id": 1, "method": "initialize"}, {"method": "notifications/x"}]
)
def test_without_an_exchange_of_its_own_the_servers_parent_is_the_call(trace, message):
    trace.passes(message)
    assert message["params"]["_meta"]["traceparent"] == f"00-{OWN.trace}-{OWN.span}-01"


def test_what_else_is_in_meta_stays_and_baggage_is_the_messages_own(trace):
    message = {"id": 1, "method": "x", "params": {"_meta": {"own": 1, "baggage": "mine"}}}
    trace.passes(message)
    meta = message["params"]["_meta"]
    assert (meta["own"], meta["baggage"], meta["tracestate"]) == (1, "mine", "a=1")


def test_a_tracestate_of_another_trace_does_not_go_on(emitted):
    trace = CallTrace(Context("1" * 32, "2" * 16, sampled=True), "", "x", {}, emitted.append)
    message = {"id": 1, "method": "x", "params": {"_meta": {"tracestate": "b=1"}}}
    trace.passes(message)
    assert "tracestate" not in message["params"]["_meta"]


def test_a_meta_that_is_none_is_left_to_the_server(trace):
    message = {"id": 1, "method": "x", "params": {"_meta": "text"}}
    trace.passes(message)
    assert message["params"] == {"_meta": "text"}


def test_span_ids_do_not_repeat():
    assert len({new_span() for _ in range(1000)}) == 1000
