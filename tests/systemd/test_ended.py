"""The record of how an invocation ended: what it says, how much, who may read it, how many."""

import json

import pytest

from support.containers import properties, reaches
from support.installed import instance, spec_of
from support.waiting import eventually

pytestmark = pytest.mark.lab

EATER = "b = bytearray(200 << 20); b[::4096] = b'x' * len(b[::4096])"


def python(program):
    return ("/usr/bin/python3", "-I", "-S", "-c", program)


def records(one):
    """The records of an instance by invocation."""
    found = {}
    for path in one.path("/run/mcp-bridge/ended").glob("*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["instance"] == one.name:
            found[path.stem] = record
    return found


async def record(one, handed):
    """Wait for the record of this invocation in its last form."""

    def there():
        found = records(one).get(handed.invocation)
        return found if found is not None and found["stderr"] is not None else None

    return await eventually(there, what="the record")


async def test_an_exit_is_recorded_with_its_code_and_the_last_lines(installed):
    program = "import sys; print('first\\nsecond é', file=sys.stderr); sys.exit(3)"
    with instance(installed, spec_of("exits", *python(program))) as one:
        with one.start() as handed:
            found = await record(one, handed)

    assert found == {
        "instance": "exits",
        "invocation": handed.invocation,
        "result": "exit-code",
        "code": "exited",
        "status": 3,
        "oom_kill": 0,
        "stderr": ["first", "second é"],
    }


async def test_a_clean_end_is_recorded_too(installed):
    with instance(installed, spec_of("clean")) as one:
        with one.start() as handed:
            handed.say(1)
            handed.line()
        found = await record(one, handed)

    assert (found["result"], found["code"], found["status"]) == ("success", "exited", 0)


async def test_a_kill_is_recorded_with_its_signal(installed):
    with instance(installed, spec_of("killed")) as one:
        with one.start() as handed:
            assert handed.rest() == b""
            installed.check("systemctl", "kill", "--signal=KILL", one.service)
            found = await record(one, handed)

    assert (found["result"], found["code"], found["status"]) == ("signal", "killed", "KILL")
    assert found["oom_kill"] == 0


@pytest.mark.requirement("S12")
async def test_a_kill_for_memory_is_told_from_any_other(installed):
    limits = {"memory": "64M"}
    with instance(installed, spec_of("eats", *python(EATER), limits=limits)) as one:
        with one.start() as handed:
            found = await record(one, handed)

    # On cgroup v1 systemd itself says no more than "signal".
    assert (found["code"], found["status"]) == ("killed", "KILL")
    assert found["oom_kill"] >= 1


async def test_a_failed_exec_is_recorded_with_its_message(installed):
    with instance(installed, spec_of("absent", "/opt/absent")) as one:
        with one.start() as handed:
            found = await record(one, handed)

    assert (found["code"], found["status"]) == ("exited", 203)
    assert "No such file or directory" in found["stderr"][-1]


async def test_a_failed_set_up_is_recorded_with_its_status(installed):
    with instance(installed, spec_of("unset", credentials={"TOKEN": "nowhere"})) as one:
        with pytest.raises((EOFError, ConnectionError)):
            one.start()
        await reaches(installed, one.socket, ActiveState="failed")
        found = await eventually(lambda: records(one))

    assert {record["status"] for record in found.values()} == {243}


@pytest.mark.parametrize("piece", ["x" * 10_000, "é" * 200 + "|"])
async def test_a_record_is_small_whatever_a_server_writes_and_keeps_the_last_lines(
    installed, piece
):
    program = f"import sys; sys.stderr.write(({piece!r} * 300).replace('|', chr(10)))"
    program += "; sys.stderr.write(chr(10) + 'last words' + chr(10)); sys.exit(1)"
    with instance(installed, spec_of("talks", *python(program))) as one:
        with one.start() as handed:
            found = await record(one, handed)
        path = one.path(f"/run/mcp-bridge/ended/{handed.invocation}.json")
        size = path.stat().st_size

    assert size <= 4096
    assert len(found["stderr"]) <= 20
    assert found["stderr"][-1] == "last words"


async def test_the_newest_three_records_of_an_instance_are_kept(installed):
    with instance(installed, spec_of("thrice")) as one, instance(installed, spec_of("once")) as two:
        with two.start() as other:
            pass
        await record(two, other)
        seen = []
        for _ in range(5):
            with one.start() as handed:
                seen.append(handed.invocation)
            await record(one, handed)
        await reaches(installed, one.service, ActiveState="inactive")

        assert {*records(one)} == {*seen[-3:]}
        assert {*records(two)} == {other.invocation}


async def test_a_record_is_for_the_proxy_s_group_alone(installed):
    with instance(installed, spec_of("owned")) as one:
        with one.start() as handed:
            pass
        await record(one, handed)
        path = f"/run/mcp-bridge/ended/{handed.invocation}.json"
        shown = installed.check("stat", "-c", "%U %G %a", path, "/run/mcp-bridge/ended")

    assert shown == "root mcp-bridge 640\nroot mcp-bridge 750\n"


async def test_a_recorder_that_cannot_write_fails_no_unit(installed):
    with instance(installed, spec_of("unwritten")) as one:
        installed.check("mv", "/run/mcp-bridge/ended", "/run/mcp-bridge/away")
        try:
            one.start().close()
            await reaches(installed, one.service, ActiveState="inactive", Result="success")
        finally:
            installed.check("mv", "/run/mcp-bridge/away", "/run/mcp-bridge/ended")
        assert properties(installed, one.socket, "ActiveState") == {"ActiveState": "active"}
