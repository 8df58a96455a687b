"""A record is closed once, whatever the end, and says what the documents say (SM-79)."""

import asyncio
from collections import Counter
from contextlib import suppress

import pytest

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.host import Audit
from autobot_mcp_bridge.policy.audit.asked import Asked, Kind
from autobot_mcp_bridge.policy.audit.outcome import TOLD, Event, Status, status_of
from autobot_mcp_bridge.policy.audit.record import CallRecord
from autobot_mcp_bridge.policy.audit.trail import AuditTrail
from autobot_mcp_bridge.policy.audit.who import Identity, connection_name, session_name
from autobot_mcp_bridge.policy.chain import STEPS
from support.installed import spec_of

AGENT = Identity("0123456789ab", "research-01", "research")


class GoneError(Exception):
    """As the endpoint refuses what is no call."""

    status, word = 404, "session_unknown"


class Trail(AuditTrail):
    """Keeps the lines for the test."""

    def __init__(self, **settings):
        super().__init__(Audit(**settings))
        self.kept = []

    def _keep(self, line):
        self.kept.append(line)


@pytest.fixture
def trail():
    return Trail()


def begin(trail, kind=Kind.CALL, method="tools/call", tool="read_file", args=None, counts=None):
    server = trail.of(spec_of("files"))
    shown = server.redact(args) if trail.keeps_args else None
    asked = Asked(kind, method, tool, shown, AGENT, session_name("s"), "127.0.0.1", "handshake")
    return trail.begin(server, asked, Counter() if counts is None else counts)


def answer(body):
    parsed = jsonrpc.parse(b'{"jsonrpc":"2.0","id":1,' + body + b"}")
    assert parsed is not None
    return parsed


# The two kinds of entries, in the fields that SM-79 lists; the values are ours: a call that went
# well, and a violation.
GOLDEN = {
    "ok": {
        "level": "info",
        "logger": "audit",
        "event": "tool_call",
        "tool": "read_file",
        "agent_id": "research-01",
        "agent_type": "research",
        "args": {"path": "notes/today.md"},
        "status": "ok",
        "error": None,
        "session_id": session_name("s"),
    },
    "blocked": {
        "level": "warning",
        "logger": "audit",
        "event": "scope_violation",
        "tool": "read_file",
        "agent_id": "research-01",
        "agent_type": "research",
        "args": {"path": "../other-agent/secrets.md"},
        "status": "blocked",
        "error": "tool_denied",
        "session_id": session_name("s"),
    },
}


@pytest.mark.requirement("SM-79")
@pytest.mark.parametrize("end", GOLDEN)
def test_an_entry_of_each_kind_has_the_documents_fields_in_their_order(trail, end):
    with begin(trail, args=GOLDEN[end]["args"]) as record:
        if end == "ok":
            record.answered(answer(b'"result":{"content":[]}'))
        else:
            record.failed(CallError(Cause.TOOL_DENIED, "Unknown tool: read_file"))

    (line,) = trail.kept
    assert {name: line[name] for name in GOLDEN[end]} == GOLDEN[end]
    assert line["timestamp"].endswith("Z") and len(line["timestamp"]) == 24
    assert line["elapsed_ms"] >= 0
    assert [*line][:12] == ["timestamp", *GOLDEN[end], "elapsed_ms"]


ENDS = {
    "ok": (lambda r: r.ok(), Status.OK, None),
    "answered": (lambda r: r.answered(answer(b'"result":{}')), Status.OK, None),
    "rpc": (
        lambda r: r.answered(answer(b'"error":{"code":-32602,"message":"m"}')),
        Status.ERROR,
        "rpc_error",
    ),
    "tool": (
        lambda r: r.answered(answer(b'"result":{"isError":true}')),
        Status.ERROR,
        "tool_failed",
    ),
    "gone": (lambda r: r.gone(), Status.CANCELLED, "client_gone"),
    "refused": (lambda r: r.refused(GoneError()), Status.BLOCKED, "session_unknown"),
    "timeout": (
        lambda r: r.failed(CallError(Cause.CALL_TIMEOUT, "m")),
        Status.TIMEOUT,
        "call_timeout",
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_first_who_closes_it_says_how_it_ended_and_nobody_after(trail, end):
    close, status, error = ENDS[end]
    counts = Counter()
    with begin(trail, counts=counts) as record:
        close(record)
        for other, *_ in ENDS.values():
            other(record)

    (line,) = trail.kept
    assert (line["status"], line["error"]) == (status, error)
    assert sum(counts.values()) == (end != "refused")  # a request that was no call is not counted


RAISED = {
    "cancelled": (asyncio.CancelledError(), "cancelled", "client_gone"),
    "connection": (ConnectionResetError(), "cancelled", "client_gone"),
    "refusal": (GoneError(), "blocked", "session_unknown"),
    "call error": (CallError(Cause.BREAKER_OPEN, "m"), "blocked", "breaker_open"),
    "fault": (ZeroDivisionError("hunter2"), "error", "internal"),
}


@pytest.mark.parametrize("raised", RAISED)
def test_what_leaves_the_block_closes_it(trail, raised):
    error, status, word = RAISED[raised]
    with pytest.raises(type(error)), begin(trail):
        raise error

    (line,) = trail.kept
    assert (line["status"], line["error"]) == (status, word)
    assert "hunter2" not in str(line)


def test_a_block_that_ends_without_a_word_is_a_fault_of_ours(trail):
    with begin(trail):
        pass

    assert [line["error"] for line in trail.kept] == ["internal"]


def test_one_that_was_handed_over_is_closed_by_who_has_it(trail):
    record = begin(trail)
    with suppress(ConnectionResetError), record:
        record.hand_over()
        raise ConnectionResetError
    assert trail.kept == []

    record.answered(answer(b'"result":{}'))
    assert [line["status"] for line in trail.kept] == ["ok"]


async def test_what_is_open_at_the_end_of_the_proxy_is_closed(trail):
    async with trail:
        begin(trail)
        with begin(trail) as record:
            record.hand_over()

    assert [line["error"] for line in trail.kept] == ["shutting_down"] * 2


@pytest.mark.parametrize("kind", [Kind.QUIET, Kind.MESSAGE])
def test_what_is_no_call_leaves_a_line_only_if_its_caller_may_not(trail, kind):
    for close in (
        lambda r: r.ok(),
        lambda r: r.failed(CallError(Cause.START_FAILED, "m")),
        lambda r: r.gone(),
    ):
        with begin(trail, kind, "tools/list", None) as record:
            close(record)
    assert trail.kept == []

    with pytest.raises(GoneError), begin(trail, kind, "tools/list", None):
        raise GoneError
    assert [line["error"] for line in trail.kept] == ["session_unknown"]


def test_every_error_has_a_status_and_only_refusals_before_contact_are_blocked():
    found = {cause: status_of(cause) for cause in Cause}

    assert [c.word for c in found if found[c] is Status.TIMEOUT] == ["call_timeout"]
    assert [c.word for c in found if found[c] is Status.CANCELLED] == ["cancelled"]
    in_flight = {c for c in Cause if c.status == 200 and c.code == -32000}
    by_chain = {cause for step in STEPS for cause in step.refuses}
    assert all(found[c] is Status.BLOCKED for c in by_chain)
    in_flight -= {Cause.CANCELLED, Cause.PROJECT_MISMATCH, *by_chain}
    assert all(found[c] in (Status.ERROR, Status.TIMEOUT) for c in in_flight)
    unavailable = {c for c in Cause if c.status == 503} - {Cause.SHUTTING_DOWN}
    assert all(found[c] is Status.BLOCKED for c in unavailable)
    assert TOLD[Status.BLOCKED] == (Event.VIOLATION, "warning")


def test_without_arguments_none_stand_in_the_line():
    trail = Trail(args=False)
    with begin(trail, args={"path": "x"}) as record:
        record.ok()

    assert trail.kept[0]["args"] is None


def test_the_words_of_an_error_are_redacted(trail):
    with begin(trail) as record:
        record.failed(CallError(Cause.CRASHED, "exit 1: token=" + "hunter2hunter2"))

    assert "hunter2" not in str(trail.kept)
    assert trail.kept[0]["message"].startswith("exit 1: token=")


@pytest.mark.requirement("SM-10")
def test_a_session_has_one_name_that_is_not_its_id():
    assert session_name("abc") == session_name("abc") != session_name("abd")
    assert "abc" not in session_name("abc")
    assert connection_name("::1", 5) == connection_name("::1", 5) != connection_name("::1", 6)
    assert session_name("\udcff") != session_name("\udcfe")  # a header may hold any bytes
    # A fixed namespace: the same tomorrow, on any host.
    assert session_name("abc") == "db7d6703-5125-58b7-9fe6-771fdcf4245f"


def test_a_record_needs_no_writer_to_be_closed_by_another(trail):
    record = begin(trail)
    assert isinstance(record, CallRecord)
    record.ok()
    assert trail.lines == {"ok": 1}
