"""W3C Trace Context: what counts as a caller's trace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.tracing.context import Context, context_of

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{SPAN}-01"


def test_the_three_members_are_read():
    found = context_of({"traceparent": GOOD, "tracestate": "a=1", "baggage": "b=2"})
    assert found == Context(TRACE, SPAN, sampled=True, state="a=1", baggage="b=2")


@pytest.mark.parametrize(("flags", "sampled"), [("00", False), ("01", True), ("03", True)])
def test_the_callers_decision_is_a_flag(flags, sampled):
    found = context_of({"traceparent": f"00-{TRACE}-{SPAN}-{flags}"})
    assert found is not None and found.sampled is sampled


def test_a_later_version_may_say_more_and_this_one_may_not():
    assert context_of({"traceparent": f"01-{TRACE}-{SPAN}-01-what"}) is not None
    assert context_of({"traceparent": f"{GOOD}-what"}) is None


@pytest.mark.parametrize(
    "text",
    [
        None,
        1,
        "",
        GOOD.upper(),
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01\n",
        f"01-{TRACE}-{SPAN}-01-{'x' * 200}",
    ],
)
def test_a_traceparent_that_cannot_be_read_is_as_if_it_were_not_there(text):
    assert context_of({"traceparent": text, "tracestate": "a=1"}) is None


@pytest.mark.parametrize("state", [1, "a" * 513, "a=\n", "ä=1"])
def test_a_tracestate_that_cannot_be_passed_on_leaves_the_parent(state):
    found = context_of({"traceparent": GOOD, "tracestate": state, "baggage": "x" * 8193})
    assert found == Context(TRACE, SPAN, sampled=True)


@given(st.dictionaries(st.sampled_from(["traceparent", "tracestate", "baggage"]), st.text()))
def test_nothing_that_a_client_sends_is_a_fault(members):
    found = context_of(members)
    assert found is None or len(found.trace) == 32
