"""What one unit's signals mean, without a bus: repeated, coalesced, missed, out of order."""

import pytest

from autobot_mcp_bridge.supervision.unit_events import Changed, Ended, OperatorStop, Started
from autobot_mcp_bridge.supervision.unit_paths import Kind
from autobot_mcp_bridge.supervision.watched_unit import WatchedUnit

A, B = "a" * 32, "b" * 32
IDLE = {"ActiveState": "inactive", "SubState": "dead", "Result": "success", "ExecMainCode": 0}


class Unit(WatchedUnit):
    def __init__(self):
        self.events, self.asked = [], []
        super().__init__(
            "files", Kind.SERVICE, self.events.append, lambda _, job: self.asked.append(job)
        )
        self.read(IDLE)

    def has(self, active, invocation=A, *, job=0, result="success", code=0, status=0, sub=""):
        self.signalled(
            {"Result": result, "ExecMainCode": code, "ExecMainStatus": status}, whole=False
        )
        unit = {"ActiveState": active, "SubState": sub, "Job": [job, "/"]}
        self.signalled({**unit, "InvocationID": bytes.fromhex(invocation)}, whole=True)

    def runs(self, invocation=A):
        self.has("active", invocation)

    def fails(self, invocation=A, **more):
        self.has("failed", invocation, result="signal", code=2, status=9, **more)

    def stops(self, invocation=A, **more):
        self.has("inactive", invocation, code=2, status=15, **more)

    def told(self, *kinds):
        return [event for event in self.events if isinstance(event, kinds)]

    def ends(self):
        return [(e.invocation[0], e.result, e.asked_by_job, e.ours) for e in self.told(Ended)]


@pytest.fixture
def unit():
    return Unit()


def test_repeated_signals_tell_one_end(unit):
    for _ in range(3):
        unit.runs()
    for _ in range(3):
        unit.fails()

    assert unit.ends() == [("a", "signal", False, False)]
    assert len(unit.told(Changed)) == 3


def test_a_job_that_ends_it_is_known_before_its_end_is_told(unit):
    unit.runs()
    assert not unit.is_asked_to_end(A)

    unit.job_new(7)
    unit.job_typed(7, "restart")

    assert unit.is_asked_to_end(A)
    assert not unit.is_asked_to_end(B)
    assert unit.ends() == []


def test_a_start_that_is_signalled_before_it_begins_is_no_end(unit):
    unit.has("inactive", A, job=7)
    unit.runs()
    unit.fails()
    unit.has("failed", B, job=8)
    unit.runs(B)

    assert [event.invocation for event in unit.told(Started)] == [A, B]
    assert unit.ends() == [("a", "signal", False, False)]


def test_an_end_that_is_coalesced_with_the_next_start_is_told_without_its_cause(unit):
    unit.runs(A)
    unit.runs(B)

    assert unit.ends() == [("a", "", False, False)]


def test_an_invocation_that_was_never_seen_alive_has_an_end(unit):
    unit.fails()

    assert [type(event) for event in unit.told(Started, Ended)] == [Started, Ended]


def test_between_two_automatic_restarts_there_is_an_end(unit):
    unit.runs()
    unit.has("activating", sub="auto-restart", result="exit-code", code=1, status=1)
    unit.runs(B)

    assert unit.ends() == [("a", "exit-code", False, False)]


def test_a_unit_that_is_unloaded_while_it_runs_is_read_again(unit):
    unit.runs()
    unit.unloaded()
    assert unit.doubtful and unit.ends() == []
    unit.read(IDLE)

    assert unit.ends() == [("a", "", False, False)]
    assert not unit.doubtful


def test_what_was_over_at_the_first_read_is_never_told():
    unit = Unit()
    unit.state = None
    unit.read({**IDLE, "ActiveState": "failed", "Result": "signal", "ExecMainCode": 2,
               "InvocationID": bytes.fromhex(A)})  # fmt: skip
    unit.unloaded()
    unit.fails()

    assert unit.told(Started, Ended) == []


@pytest.mark.parametrize(("job_type", "stopped"), [("", False), ("start", False), ("stop", True)])
def test_a_job_that_is_over_before_the_first_read_is_a_stop_only_by_its_type(job_type, stopped):
    unit = Unit()
    unit.state = None
    unit.job_new(7)
    unit.job_typed(7, job_type)
    unit.job_removed(7, "done")
    unit.read(IDLE)

    assert bool(unit.told(OperatorStop)) == stopped


def test_what_was_missed_is_told_at_the_next_read(unit):
    unit.runs()
    unit.lost()
    unit.read({"ActiveState": "failed", "Result": "exit-code", "ExecMainCode": 1,
               "ExecMainStatus": 3, "InvocationID": bytes.fromhex(B)})  # fmt: skip

    assert unit.ends() == [("a", "", False, False), ("b", "exit-code", False, False)]


def test_a_job_that_was_queued_on_a_running_unit_has_stopped_it_whatever_its_type(unit):
    unit.runs()
    unit.job_new(7)
    unit.stops(job=7)
    unit.job_removed(7, "done")

    assert unit.ends() == [("a", "success", True, False)]
    assert unit.told(OperatorStop) != []


def test_a_restart_is_asked_for_but_is_no_stop_for_good(unit):
    unit.runs()
    unit.has("active", job=7)
    unit.job_new(7)
    unit.stops(job=7)
    unit.has("activating", B, job=7)
    unit.job_typed(7, "start")
    unit.has("active", B, job=7)
    unit.job_removed(7, "done")

    assert unit.ends() == [("a", "success", True, False)]
    assert unit.told(OperatorStop) == []
    assert unit.asked == [7]


@pytest.mark.parametrize("job_type", ["start", "stop", ""])
def test_a_crash_is_no_work_of_a_job_that_came_after_it(unit, job_type):
    unit.runs()
    unit.has("deactivating", sub="stop-post", result="signal", code=2, status=9)
    unit.job_new(7)
    unit.job_typed(7, job_type)
    unit.fails(job=7)

    assert unit.ends() == [("a", "signal", False, False)]


@pytest.mark.parametrize(
    ("job_type", "asked"), [("stop", True), ("restart", True), ("start", False)]
)
def test_a_job_that_is_seen_first_at_the_end_is_judged_by_its_type(unit, job_type, asked):
    unit.runs()
    unit.fails(job=7)
    assert unit.ends() == []
    unit.job_typed(7, job_type)

    assert unit.ends() == [("a", "signal", asked, False)]


@pytest.mark.parametrize(("result", "asked"), [("done", True), ("failed", False)])
def test_a_job_whose_type_nobody_knows_is_judged_by_what_it_left(unit, result, asked):
    unit.runs()
    unit.fails(job=7)
    unit.job_typed(7, "")
    unit.job_removed(7, result)

    assert unit.ends() == [("a", "signal", asked, False)]
    assert bool(unit.told(OperatorStop)) == asked


def test_an_end_that_waits_for_a_job_s_type_is_not_lost_with_the_bus(unit):
    unit.runs()
    unit.fails(job=7)
    unit.lost()

    assert unit.ends() == [("a", "signal", False, False)]


def test_a_stop_of_ours_is_no_operator_s_even_before_its_call_is_answered(unit):
    unit.runs()
    unit.own_call()
    unit.job_new(7)
    unit.job_typed(7, "stop")
    unit.own_job(7)
    unit.stops(job=7)
    unit.job_removed(7, "done")
    unit.own_call_done()

    assert unit.ends() == [("a", "success", True, True)]
    assert unit.told(OperatorStop) == []


def test_an_operator_s_stop_during_a_call_of_ours_is_told_when_that_is_answered(unit):
    unit.own_call()
    unit.job_new(7)
    unit.job_typed(7, "stop")
    assert unit.told(OperatorStop) == []
    unit.own_job(8)

    assert len(unit.told(OperatorStop)) == 1


def test_an_end_without_a_job_is_none_that_was_asked_for(unit):
    unit.runs()
    unit.has("deactivating", sub="stop-sigterm", result="timeout", code=0)
    unit.has("failed", result="timeout", code=2, status=15)

    assert unit.ends() == [("a", "timeout", False, False)]


def test_a_job_that_is_claimed_before_or_after_it_is_seen_is_ours(unit):
    unit.runs()
    unit.own_job(7)
    unit.job_new(7)
    unit.stops(job=7)
    unit.job_removed(7, "done")
    unit.runs(B)
    unit.job_new(8)
    unit.own_job(8)
    unit.stops(B, job=8)
    unit.job_removed(8, "done")

    assert unit.ends() == [("a", "success", True, True), ("b", "success", True, True)]
    assert unit.told(OperatorStop) == []


def test_a_job_whose_end_was_not_signalled_is_forgotten_at_the_next_read(unit):
    unit.runs()
    unit.job_new(7)
    unit.job_typed(7, "stop")
    unit.read({"ActiveState": "active", "InvocationID": bytes.fromhex(A), "Job": [0, "/"]})
    unit.fails()

    assert unit.ends() == [("a", "signal", False, False)]
