"""The last-words record: waited for, bounded, and never trusted."""

import asyncio
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.model.death import DeathCause
from autobot_mcp_bridge.supervision.ended import MOST_BYTES, last_words, parse

INVOCATION = "0d8c9fa5c0c44f4f8af9966259e5b55d"


def record(**changes):
    entries = {
        "instance": "acme.files",
        "invocation": INVOCATION,
        "result": "signal",
        "code": "killed",
        "status": "KILL",
        "oom_kill": 0,
        "stderr": ["one", "two"],
    }
    return json.dumps({**entries, **changes}).encode()


def parsed(raw):
    return parse(raw, "acme.files", INVOCATION)


def death(**changes):
    found = parsed(record(**changes)).death(str.upper)
    return found.cause, found.status


@pytest.mark.parametrize(
    ("result", "code", "status", "oom_kill", "expected"),
    [
        ("exit-code", "exited", "3", 0, (DeathCause.EXIT, 3)),
        ("success", "exited", 0, 0, (DeathCause.EXIT, 0)),
        ("signal", "killed", "KILL", 0, (DeathCause.SIGNAL, 9)),
        ("signal", 2, 9, 0, (DeathCause.SIGNAL, 9)),
        ("core-dump", "dumped", "SEGV", 0, (DeathCause.SIGNAL, 11)),
        ("signal", "killed", "SYS", 0, (DeathCause.SECCOMP, 31)),
        ("core-dump", "dumped", "SYS", 0, (DeathCause.SECCOMP, 31)),
        ("signal", "killed", "KILL", 1, (DeathCause.MEMORY, None)),
        ("oom-kill", "killed", "TERM", 0, (DeathCause.MEMORY, None)),
        ("success", "exited", "0", 2, (DeathCause.EXIT, 0)),
        ("watchdog", "killed", "ABRT", 0, (DeathCause.WATCHDOG, None)),
        ("timeout", "killed", "TERM", 0, (DeathCause.TIMEOUT, None)),
        ("exit-code", "exited", "226", 0, (DeathCause.SETUP, 226)),
        ("exit-code", "exited", "203", 0, (DeathCause.EXEC, None)),
        ("resources", "", "", 0, (DeathCause.RESOURCES, None)),
        ("start-limit-hit", "", "", 0, (DeathCause.START_LIMIT, None)),
        ("protocol", "", "", 0, (DeathCause.UNKNOWN, None)),
    ],
)
def test_each_end_has_its_cause(result, code, status, oom_kill, expected):
    assert death(result=result, code=code, status=status, oom_kill=oom_kill) == expected


def test_a_status_of_a_set_up_step_is_the_server_s_own_once_it_has_begun():
    found = parsed(record(result="exit-code", code="exited", status="226"))

    before, after = found.death(str), found.death(str, began=True)

    assert before.describe().startswith("its set-up failed at step NAMESPACE, status 226")
    assert before.as_data()["step"] == "NAMESPACE"
    assert (after.cause, after.status) == (DeathCause.EXIT, 226)


def test_a_detail_is_told_of_a_set_up_that_failed_and_of_nothing_else():
    missing = {"result": "exit-code", "code": "exited", "status": 243, "detail": "TOKEN: gone"}
    found = parsed(record(**missing))

    assert found.death(str.upper).describe().endswith("step CREDENTIALS, status 243: TOKEN: gone")
    assert found.death(str.upper, began=True).detail == ""


def test_a_detail_is_one_short_line_or_refused():
    assert parsed(record(detail="two\nlines")).detail == "two\N{REPLACEMENT CHARACTER}lines"
    assert len(parsed(record(detail="x" * 2000)).detail) == 1024
    for wrong in (3, None):
        with pytest.raises(ValueError, match="detail"):
            parsed(record(detail=wrong))


def test_the_last_lines_are_redacted_by_the_caller():
    assert parsed(record()).death(str.upper).last_words == ("ONE", "TWO")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"7",
        b"[" * 4000,
        record(instance="other"),
        record(invocation="f" * 32),
        record(result="Exit Code\n"),
        record(result=None),
        record(code="eaten"),
        record(code=True),
        record(code=[2]),
        record(status={}),
        record(status=-1),
        record(status="9" * 30),
        record(oom_kill="many"),
        record(stderr="text"),
        record(stderr=[1]),
        record(stderr=["x" * MOST_BYTES]),
    ],
)
def test_what_is_no_record_is_refused(raw):
    with pytest.raises(ValueError, match=r"\w"):
        parsed(raw)


@given(st.binary(max_size=200) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["instance", "code", "status", "result", "stderr", "oom_kill"]), inner
    ),
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_no_bytes_do_anything_but_being_refused(raw):
    with pytest.raises(ValueError, match=r"\w"):
        parsed(raw)


@given(st.dictionaries(st.sampled_from(["code", "status", "oom_kill", "result"]), st.integers()
    | st.text(max_size=9) | st.booleans() | st.none() | st.floats() | st.lists(st.none())))  # fmt: skip
def test_no_values_do_anything_but_being_refused(changes):
    try:
        found = parsed(record(**changes))
    except ValueError:
        return
    assert found.death(str).describe()


async def test_a_record_that_comes_late_is_waited_for(tmp_path):
    waiting = asyncio.create_task(last_words("acme.files", INVOCATION, folder=tmp_path, within=20))
    # Incomplete first, as when a writer does not rename it into its place.
    path = tmp_path / f"{INVOCATION}.json"
    path.write_bytes(record()[:20])
    await asyncio.wait({waiting}, timeout=0.05)
    assert not waiting.done()
    path.write_bytes(record())

    assert (await waiting).stderr == ("one", "two")


async def test_no_record_is_no_error_and_a_wrong_one_is_logged(tmp_path, caplog):
    assert await last_words("acme.files", INVOCATION, folder=tmp_path, within=0) is None
    assert caplog.text == ""
    (tmp_path / f"{INVOCATION}.json").write_bytes(b"{}")

    assert await last_words("acme.files", INVOCATION, folder=tmp_path, within=0) is None
    assert "acme.files" in caplog.text


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("target")])
async def test_only_a_regular_file_is_read(tmp_path, make):
    (tmp_path / "target").write_bytes(record())
    make(tmp_path / f"{INVOCATION}.json")

    assert await last_words("acme.files", INVOCATION, folder=tmp_path, within=0) is None


async def test_an_invocation_cannot_name_another_file(tmp_path):
    with pytest.raises(ValueError, match="invocation"):
        await last_words("acme.files", "../" + INVOCATION[3:], folder=tmp_path)
