"""Which lines are wanted, and how a time is given."""

from datetime import UTC, datetime

import pytest

from autobot_mcp_bridge.policy.audit.show import Wanted, point_in_time, row

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
LINE = {
    "timestamp": "2026-11-30T10:00:00.500Z",
    "level": "warning",
    "event": "scope_violation",
    "tool": "echo",
    "status": "blocked",
    "error": "tool_denied",
    "message": "Unknown tool: echo",
    "elapsed_ms": 1.234,
    "tenant": "acme",
    "server": "web",
    "instance": "acme.site.web",
    "principal": "0123456789ab",
}


@pytest.mark.parametrize(
    ("text", "stamp"),
    [
        ("2026-11-30", "2026-11-30T00:00:00.000Z"),
        ("2026-11-30T10:00:00Z", "2026-11-30T10:00:00.000Z"),
        ("2026-11-30T10:00", "2026-11-30T10:00:00.000Z"),
        ("2026-11-30T10:00:00+02:00", "2026-11-30T08:00:00.000Z"),
        ("2h", "2026-11-30T10:00:00.000Z"),
        ("90s", "2026-11-30T11:58:30.000Z"),
    ],
)
def test_a_time_is_a_date_a_moment_or_how_long_ago(text, stamp):
    assert point_in_time(text, NOW) == stamp


@pytest.mark.parametrize("text", ["yesterday", "", "2026-13-01", "-2h"])
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="allowed is"):
        point_in_time(text, NOW)


@pytest.mark.parametrize(
    ("wanted", "met"),
    [
        (Wanted({}), True),
        (Wanted({"tenant": "acme", "tool": "echo", "status": "blocked"}), True),
        (Wanted({"server": "web"}), True),
        (Wanted({"server": "acme.site.web"}), True),
        (Wanted({"server": "site.web"}), False),
        (Wanted({"principal": "0123"}), True),
        (Wanted({"principal": "1234"}), False),
        (Wanted({"principal": ""}), False),
        (Wanted({"tool": "ech"}), False),
        (Wanted({}, since="2026-11-30T10:00:00.500Z"), True),
        (Wanted({}, since="2026-11-30T10:00:00.501Z"), False),
        (Wanted({}, until="2026-11-30T10:00:00.501Z"), True),
        (Wanted({}, until="2026-11-30T10:00:00.500Z"), False),
    ],
)
def test_a_line_is_shown_if_it_says_all_that_is_wanted(wanted, met):
    assert wanted.is_met(LINE) is met


def test_a_person_reads_when_what_by_whom_and_how_it_ended():
    assert row(LINE) == [
        *("2026-11-30T10:00:00.500Z", "blocked", "acme.site.web", "echo", "0123456789ab"),
        *("1.2 ms", "tool_denied: Unknown tool: echo"),
    ]
    started = {"timestamp": "t", "level": "warning", "event": "audit_started", "unrecorded": 3}
    assert row(started) == ["t", "warning", "-", "audit_started", "-", "-", "unrecorded 3"]
