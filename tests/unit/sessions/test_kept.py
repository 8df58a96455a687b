"""Sessions as the next proxy finds them."""

from autobot_mcp_bridge.model.host import HostLimits
from autobot_mcp_bridge.policy.principals import Grant, Principal
from autobot_mcp_bridge.sessions.kept import KeptSessions
from autobot_mcp_bridge.sessions.session import SessionTable
from autobot_mcp_bridge.sessions.tasks import TaskOwners
from autobot_mcp_bridge.supervision.journal import Held

PRINCIPAL = Principal("d" * 64, "files")


def table(memory):
    return SessionTable(HostLimits(), lambda: 1000.0, KeptSessions(memory, "files"))


def dropped(_reason):
    raise AssertionError("nothing is lost here")


def restored(memory):
    made = table(memory)
    for kept in made.kept.read():
        assert kept.digest == PRINCIPAL.digest
        made.restore(kept, PRINCIPAL, dropped)
    return made


def test_a_session_comes_back_with_all_that_was_said_in_it():
    memory = Held()
    first = table(memory)
    session = first.open(PRINCIPAL, "2025-11-25", dropped)
    session.level = "error"
    first.kept.write(session)
    for uri in ("file:///a b", "file:///c", "file:///gone"):
        session.subscriptions.add(uri)
        first.kept.subscribed(session, uri)
    session.subscriptions.discard("file:///gone")
    first.kept.unsubscribed(session.id, "file:///gone")
    session.outbox.push(b'{"bytes":"\xff\n"}')
    session.outbox.push(b"2")
    first.leave()

    second = restored(memory)
    found = second.find(session.id, PRINCIPAL)
    assert (found.version, found.level) == ("2025-11-25", "error")
    assert found.subscriptions == {"file:///a b", "file:///c"}
    assert found.outbox.rest() == [b'{"bytes":"\xff\n"}', b"2"]
    assert restored(memory).find(session.id, PRINCIPAL).outbox.rest() == []


def test_nothing_is_left_of_a_session_that_has_ended():
    memory = Held()
    first = table(memory)
    session = first.open(PRINCIPAL, "2025-11-25", dropped)
    session.subscriptions.add("file:///a")
    first.kept.subscribed(session, "file:///a")
    first.end(session)
    assert not list(memory.lines())


def test_a_record_of_another_form_is_passed_over():
    memory = Held()
    for number, value in enumerate(([], "x", ["digest", 1, None], {"digest": "d"})):
        memory.put("session", "files", str(number), value)
    memory.put("subscription", "files", "nobody file:///a", 1)
    assert table(memory).kept.read() == []


def test_a_task_is_still_its_own_callers():
    memory = Held()
    memory.put("task", "files", "t1", PRINCIPAL.digest)
    TaskOwners(memory, "files").check(PRINCIPAL, {"taskId": "t1"})


def holder(expires):
    grant = Grant("s" * 64, frozenset({"https://a/mcp"}), frozenset({"one"}), expires, "k" * 64)
    return Principal(grant.subject, "files", expires, grant)


def test_a_session_knows_what_the_longest_access_token_of_its_caller_says():
    memory = Held()
    first = table(memory)
    session = first.open(holder(100.0), "2025-11-25", dropped)
    assert first.find(session.id, holder(200.0)) is session
    assert first.find(session.id, holder(150.0)) is session
    assert session.principal == holder(200.0)

    (kept,) = table(memory).kept.read()
    assert kept.grant == holder(200.0).grant


def test_a_grant_of_another_form_is_none():
    for memo in (None, [], [1, 2, 3, 4], [["a"], ["b"], "1", "k"], {"expires": 1}):
        assert Grant.recall("s", memo) is None


def test_a_session_of_a_static_token_has_no_grant():
    memory = Held()
    table(memory).open(PRINCIPAL, "2025-11-25", dropped)
    (kept,) = table(memory).kept.read()
    assert kept.grant is None
