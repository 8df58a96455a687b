"""What passes of a process's list, and which calls; the process is a list of pages here."""

import asyncio

import pytest

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.server import Tools
from autobot_mcp_bridge.model.versions import Era
from autobot_mcp_bridge.policy.drift.drift import Drift
from autobot_mcp_bridge.policy.tools import ToolRule
from autobot_mcp_bridge.sessions import descriptors
from autobot_mcp_bridge.sessions import listed as module
from autobot_mcp_bridge.sessions.listed import Listed

READ, EVIL = (
    {"name": "read", "description": text, "inputSchema": {"type": "object"}}
    for text in ("reads", "sends")
)
WRITE = {"name": "write", "description": "writes", "inputSchema": {"type": "object"}}


def page(*tools, **more):
    found = jsonrpc.parse(
        jsonrpc.dumps({"jsonrpc": "2.0", "id": 7, "result": {"tools": tools, **more}})
    )
    assert isinstance(found, jsonrpc.Answer)
    return found


def shown(answer):
    return answer.parsed()["result"]["tools"]


class Process:
    """Stands for a channel: what its process lists, and how often it was asked."""

    def __init__(self, *tools):
        self.tools = tools
        self.asked = 0
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.while_asked = lambda: None

    async def pages(self):
        self.asked += 1
        self.is_asked.set()
        await self.may_answer.wait()
        self.while_asked()
        yield {"tools": list(self.tools)}


@pytest.fixture(autouse=True)
def _asked(monkeypatch):
    monkeypatch.setattr(descriptors, "pages", lambda process, _era: process.pages())


@pytest.fixture
def drift():
    made = Drift("files")
    made.mode = "hold"
    return made


class Told:
    """Stands for the notifications that a process's tools have changed."""

    def __init__(self):
        self.changes = 0


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def listed(drift, told):
    return Listed(drift, ToolRule(Tools()), lambda: told.changes)


@pytest.fixture
def changed(listed, told):
    def changed():
        told.changes += 1
        listed.changed()

    return changed


async def calls(listed, process, name):
    """The cause of what becomes of a call; None: it passes."""
    try:
        listed.refuse(name)
        await listed.admit(process, Era.HANDSHAKE, name)
    except CallError as error:
        return error.cause
    return None


async def test_a_process_is_looked_at_once_and_again_when_it_says_so(listed, changed):
    process = Process(READ)
    for _ in range(3):
        assert await calls(listed, process, "read") is None
    assert process.asked == 1

    changed()
    assert await calls(listed, process, "read") is None

    assert process.asked == 2


async def test_the_next_process_is_looked_at_before_its_first_call(listed):
    assert await calls(listed, Process(READ), "read") is None

    assert await calls(listed, Process(EVIL), "read") is Cause.TOOL_HELD


async def test_calls_that_come_during_a_look_wait_for_it(listed):
    assert await calls(listed, Process(READ), "read") is None
    process = Process(EVIL)
    process.may_answer.clear()
    many = [asyncio.create_task(calls(listed, process, "read")) for _ in range(5)]
    await process.is_asked.wait()
    many += [asyncio.create_task(calls(listed, process, "read")) for _ in range(5)]
    process.may_answer.set()

    assert {await each for each in many} == {Cause.TOOL_HELD}
    assert process.asked == 1


async def test_a_change_that_is_told_during_a_look_makes_another(listed, changed):
    process = Process(READ)
    process.while_asked = changed
    assert await calls(listed, process, "read") is None
    process.while_asked = lambda: None
    process.tools = (EVIL,)

    assert await calls(listed, process, "read") is Cause.TOOL_HELD
    assert process.asked == 2


async def test_a_caller_that_goes_does_not_end_a_look_for_the_others(listed):
    process = Process(READ)
    process.may_answer.clear()
    goes, stays = (asyncio.create_task(calls(listed, process, "read")) for _ in range(2))
    await process.is_asked.wait()
    goes.cancel()
    await asyncio.wait([goes])
    process.may_answer.set()

    assert await stays is None
    assert process.asked == 1


@pytest.mark.parametrize("both", [(READ, EVIL), (EVIL, READ)])
async def test_a_name_that_stands_twice_passes_only_if_both_are_accepted(listed, both):
    assert await calls(listed, Process(READ), "read") is None

    assert await calls(listed, Process(*both), "read") is Cause.TOOL_HELD
    assert shown(listed.known(page(*both, WRITE))) == []


async def test_what_a_process_lists_no_more_is_not_called(listed):
    assert await calls(listed, Process(READ, WRITE), "write") is None

    assert await calls(listed, Process(READ), "write") is Cause.TOOL_DENIED


async def test_a_kept_page_is_judged_by_its_own_descriptors(listed):
    """What it holds may be older than what the process has listed since."""
    assert await calls(listed, Process(READ), "read") is None

    assert shown(listed.known(page(EVIL))) == []
    assert shown(listed.known(page(READ))) == [READ]


async def test_a_page_that_is_too_large_to_be_looked_at_does_not_pass(listed, drift, monkeypatch):
    assert await calls(listed, Process(READ), "read") is None
    answer = page(READ)
    monkeypatch.setattr(module, "MAX_LISTED", len(answer.line) - 1)

    with pytest.raises(CallError) as refused:
        listed.passed(answer, first=True)
    assert refused.value.cause is Cause.ANSWER_TOO_LARGE
    drift.mode = "warn"
    assert listed.passed(answer, first=True) is answer


async def test_a_page_passes_as_its_very_bytes_where_nothing_is_held(listed, drift):
    for mode in ("off", "warn"):
        drift.mode = mode
        answer = page(READ, nextCursor="1")
        assert listed.passed(answer, first=True) is answer


async def test_where_nothing_is_held_no_process_is_looked_at(listed, drift):
    process = Process(READ)
    for mode in ("off", "warn"):
        drift.mode = mode
        assert await calls(listed, process, "read") is None

    assert process.asked == 0


async def test_a_process_that_was_looked_at_for_something_else_is_not_asked_again(listed):
    process = Process(EVIL)
    assert await listed.descriptors.find(process, Era.HANDSHAKE, "read") is not None

    assert await calls(listed, process, "read") is None  # of a server that is seen first
    assert process.asked == 1


async def test_what_is_known_to_be_held_is_refused_until_another_list_may_be_there(listed, changed):
    process = Process(READ)
    assert await calls(listed, process, "read") is None
    listed.passed(page(EVIL), first=True)
    with pytest.raises(CallError):
        listed.refuse("read")

    changed()

    listed.refuse("read")
    assert await calls(listed, process, "read") is None


async def test_an_error_in_the_place_of_a_list_passes(listed):
    line = jsonrpc.dumps({"jsonrpc": "2.0", "id": 7, "error": {"code": -32601, "message": "no"}})
    answer = jsonrpc.parse(line)

    assert listed.passed(answer, first=True) is answer
