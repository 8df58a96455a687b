"""Sessions as the next proxy finds them."""

import pytest

from autobot_mcp_bridge.model.host import HostLimits
from autobot_mcp_bridge.policy.principals import Grant, Key, Principal, principal_of
from autobot_mcp_bridge.sessions.kept import KeptSessions, ShownKey
from autobot_mcp_bridge.sessions.session import SessionTable
from autobot_mcp_bridge.sessions.tasks import TaskOwners
from autobot_mcp_bridge.supervision.journal import Held

PRINCIPAL = Principal("d" * 64, "files")
EVENT = b'{"bytes":"\xff\n"}'


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
    session.outbox.push(EVENT)
    session.outbox.push(b"2")
    first.leave()

    second = restored(memory)
    found = second.find(session.id, PRINCIPAL)
    assert (found.version, found.level) == ("2025-11-25", "error")
    assert found.subscriptions == {"file:///a b", "file:///c"}
    assert events(found.outbox, None) == [EVENT, b"2"]
    assert events(restored(memory).find(session.id, PRINCIPAL).outbox, None) == []


def events(stream, after):
    """What a reader that comes now gets at once."""
    place, found = stream.read(after, Gone()).place, []
    while (event := stream.event_after(place)) is not None:
        place = event[0]
        found.append(event[1])
    return found


class Gone:
    """A reader that is cut off before it can read."""

    def cut(self):
        pass

    def lost(self):
        return True


def test_an_id_of_before_is_good_after():
    memory = Held()
    first = table(memory)
    session = first.open(PRINCIPAL, "2025-11-25", dropped)
    for event in (b"1", b"2", b"3"):
        session.outbox.push(event)
    assert events(session.outbox, None) == [b"1", b"2", b"3"]
    call = session.streams.begin()
    call.push(b"progress")
    call.end(b"answer", bytes)
    open_call = session.streams.begin()
    open_call.push(b"lost")
    first.leave()

    found = restored(memory).find(session.id, PRINCIPAL)
    own, place = found.streams.find(f"{session.outbox.name}.1")
    assert own is found.outbox
    assert events(own, place) == [b"2", b"3"]
    own.push(b"4")
    assert events(*found.streams.find(f"{session.outbox.name}.3")) == [b"4"]
    again, place = found.streams.find(f"{call.name}.1")
    assert again.ended
    assert events(again, place) == [b"answer"]
    with pytest.raises(LookupError):
        found.streams.find(f"{open_call.name}.1")


def test_after_a_kill_the_own_stream_goes_on_and_its_old_numbers_mean_nothing():
    memory = Held()
    session = table(memory).open(PRINCIPAL, "2025-11-25", dropped)
    session.outbox.push(b"lost")
    cursor = f"{session.outbox.name}.1"

    found = restored(memory).find(session.id, PRINCIPAL)
    found.outbox.push(b"new")
    assert events(*found.streams.find(cursor)) == [b"new"]
    assert not found.outbox.name.startswith(session.outbox.name)


def test_what_is_left_behind_is_bounded(monkeypatch):
    monkeypatch.setattr("autobot_mcp_bridge.sessions.session.LEFT_BEHIND", 1000)
    memory = Held()
    first = table(memory)
    session = first.open(PRINCIPAL, "2025-11-25", dropped)
    calls = [session.streams.begin() for _ in range(3)]
    for call, size in zip(calls, (500, 800, 50), strict=True):
        call.end(b"x" * size, bytes)
    first.leave()

    streams = restored(memory).find(session.id, PRINCIPAL).streams
    kept = {name for name in (call.name for call in calls) if found(streams, name)}
    assert kept == {calls[0].name, calls[2].name}


def found(streams, name):
    try:
        return streams.find(f"{name}.0")
    except LookupError:
        return None


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


@pytest.mark.parametrize("token", [None, "t" * 64])
@pytest.mark.parametrize("project", [None, "web"])
def test_what_a_holder_of_a_key_has_shown_is_kept_with_its_session(token, project):
    memory = Held()
    key = Key("a" * 64, "00000001", 1.0, "acme", None, frozenset(), "a1", "coder")
    beside = Principal(token, "files") if token is not None else None
    principal = principal_of(key, "files", project, beside)
    table(memory).open(principal, "2025-11-25", dropped)

    (kept,) = KeptSessions(memory, "files").read()

    assert kept.key == ShownKey("a" * 64, token, project)
    assert (kept.digest, kept.grant) == (principal.digest, None)


def test_a_session_of_a_release_before_keys_is_read():
    memory = Held()
    table(memory).open(PRINCIPAL, "2025-11-25", dropped)
    ((name, value),) = memory.items("session", "files").items()
    del value["key"]
    memory.put("session", "files", name, value)

    (kept,) = KeptSessions(memory, "files").read()

    assert (kept.digest, kept.key) == (PRINCIPAL.digest, None)
