"""Tools that are not as they were accepted, with a real server that changes them.

Each promise is tried in every cell of server era, sessions and client era in which it can be.
"""

import asyncio
import json
import os
import signal

import pytest

from support.audited import calls, recorded
from support.bridge import Bridge
from support.client import code_of
from support.drifting import (
    CELLS,
    EVERYWHERE,
    EVIL,
    READ,
    SEND,
    WRITE,
    accepted,
    client,
    descriptors,
    kept,
    lists,
    passes,
    refused,
    server,
    states,
    tool,
    tools_command,
    writes,
)
from support.extensions import install
from support.waiting import eventually

SHARED = pytest.mark.parametrize("cell", [cell for cell in CELLS if cell[1] == "shared"])

# ---- holding back ----


@EVERYWHERE
async def test_a_changed_tool_is_held_back_and_the_others_keep_working(cell):
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ, WRITE)
        async with client(bridge, cell) as caller:
            await passes(caller, "read", "write")
        lists(bridge, "files", EVIL, WRITE)

        async with client(bridge, cell) as caller:
            assert await descriptors(caller) == {"write": WRITE}
            error = await refused(caller, "read")
            await passes(caller, "write")

        assert error["data"] == {"code": "tool_held", "tool": "read", "drift": "changed"}
        for part in ("the tool read", "otherwise than when it was accepted"):
            assert part in error["message"]
        assert "`mcp-bridge tools accept files read`" in error["message"]
        assert await states(bridge, "files") == {"read": "changed", "write": "accepted"}
        assert "files: tools: read: not as accepted, held back" in bridge.log()


@EVERYWHERE
async def test_a_new_tool_is_held_back(cell):
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ)
        lists(bridge, "files", READ, SEND)

        async with client(bridge, cell) as caller:
            assert await descriptors(caller) == {"read": READ}
            error = await refused(caller, "send")
            await passes(caller, "read")

        assert error["data"]["drift"] == "new"
        assert "has come since" in error["message"]


@EVERYWHERE
async def test_an_accepted_tool_passes_and_is_equal_to_the_server_s_value_for_value(
    cell, record_property
):
    rich = {
        **tool("rich", "größer ≠ kleiner", title="Rich", annotations={"readOnlyHint": True}),
        "outputSchema": {
            "type": "object",
            "properties": {"n": {"maximum": 123456789012345678901234567890, "multipleOf": 0.01}},
        },
        "_meta": {"a": [1, 2.5, -0.0, 1e22, None, True, {}]},
        "unknown": {"deep": [[[[["x"]]]]]},
    }
    text = json.dumps({"tools": [rich, READ]})
    async with Bridge([server(cell)]) as bridge:
        writes(bridge, "files", text)
        async with client(bridge, cell) as caller:
            found = await descriptors(caller)
            await passes(caller, "rich", "read")
        expected = {"rich": rich, "read": READ}
        record_property(
            "differing_descriptors", sum(found[name] != expected[name] for name in found)
        )
        assert found == expected
        lists(bridge, "files", rich, {**READ, "title": "Other"})
        async with client(bridge, cell) as caller:
            assert await descriptors(caller) == {"rich": rich}


@EVERYWHERE
async def test_what_an_administrator_accepts_is_let_through_at_once(cell):
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ, WRITE)
        lists(bridge, "files", EVIL, WRITE, SEND)
        async with client(bridge, cell) as caller:
            await descriptors(caller)
            await refused(caller, "read")

            ran = await tools_command(bridge, "accept", "files", "read")

            assert (ran.status, ran.out) == (0, "")
            assert ran.err == "mcp-bridge: files: accepted: read\n"
            assert await descriptors(caller) == {"read": EVIL, "write": WRITE}
            await passes(caller, "read", "write")
            await refused(caller, "send")
            await tools_command(bridge, "accept", "files")
            await passes(caller, "send")
        assert set((await states(bridge, "files")).values()) == {"accepted"}


@EVERYWHERE
async def test_a_tool_that_is_as_accepted_again_passes_without_anybody(cell):
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ)
        lists(bridge, "files", EVIL)
        async with client(bridge, cell) as caller:
            assert await descriptors(caller) == {}
            await refused(caller, "read")
            lists(bridge, "files", READ)

            assert await descriptors(caller) == {"read": READ}
            await passes(caller, "read")


@EVERYWHERE
async def test_a_name_that_is_not_listed_is_unknown_before_its_server_is_asked(cell):
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ)
        async with client(bridge, cell) as caller:
            assert code_of(await caller.call("hidden", {})) == "tool_denied"
            await passes(caller, "read")


# ---- attacks ----


@EVERYWHERE
async def test_a_call_is_judged_by_its_own_process_also_when_nobody_has_listed(cell):
    """Who calls at once meets a process that the proxy has looked at itself."""
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ, WRITE)
        await bridge.stop()
        lists(bridge, "files", EVIL, WRITE)
        await bridge.start()

        async with client(bridge, cell) as caller:
            await refused(caller, "read")
            await passes(caller, "write")


@SHARED
async def test_calls_that_come_at_once_all_wait_until_their_process_is_looked_at(cell):
    """The process before has listed the tool as it was accepted, to nobody but the proxy."""
    async with Bridge([server(cell, "--slow", "0.3")]) as bridge:
        lists(bridge, "files", READ, WRITE)
        async with client(bridge, cell) as caller:
            await passes(caller, "read")
            lists(bridge, "files", EVIL, WRITE)
            os.kill(await bridge.server_pid("files"), signal.SIGKILL)
            await bridge.in_state("files", "sleeping")

            answers = await asyncio.gather(*(caller.call("read", {}) for _ in range(8)))

            assert {code_of(answer) for answer in answers} == {"tool_held"}
            await passes(caller, "write")


@SHARED
async def test_a_process_that_does_not_list_its_tools_in_time_has_none_until_it_does(cell):
    async with Bridge([server(cell, "--slow", "30")]) as bridge:
        lists(bridge, "files", READ)
        async with client(bridge, cell) as caller:
            error = await refused(caller, "read")

            assert "has not listed its tools in 3 s" in error["message"]


@EVERYWHERE
async def test_a_list_of_nonsense_is_an_empty_one(cell):
    odd = [5, None, "x", [], {}, {"name": 1}, {"name": "n" * 300}, WRITE]
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ)
        for tools, shown in (
            (odd, {}),
            (5, {}),
            ({"read": READ}, {}),
            ([*odd, READ], {"read": READ}),
        ):
            writes(bridge, "files", json.dumps({"tools": tools}))
            async with client(bridge, cell) as caller:
                assert await descriptors(caller) == shown
        writes(bridge, "files", json.dumps({"other": 1}))
        async with client(bridge, cell) as caller:
            assert await descriptors(caller) == {}


@EVERYWHERE
async def test_a_list_that_changes_from_one_request_to_the_next_is_looked_at_each_time(cell):
    async with Bridge([server(cell)]) as bridge:
        lists(bridge, "files", READ, WRITE)

        async with client(bridge, cell) as caller:
            await passes(caller, "read")
            assert await descriptors(caller) == {"read": READ, "write": WRITE}
            lists(bridge, "files", EVIL, WRITE)
            assert await descriptors(caller) == {"write": WRITE}
            await refused(caller, "read")
            await passes(caller, "write")


@EVERYWHERE
async def test_a_tool_on_a_later_page_is_held_back_like_any_other(cell):
    first = json.dumps({"tools": [READ], "nextCursor": "1"})
    async with Bridge([server(cell)]) as bridge:
        writes(bridge, "files", first, json.dumps({"tools": [WRITE]}))
        async with client(bridge, cell) as caller:
            assert await caller.tools() == ["read", "write"]
        writes(bridge, "files", first, json.dumps({"tools": [SEND, tool("write", "sends")]}))

        async with client(bridge, cell) as caller:
            assert await caller.tools() == ["read"]
            await passes(caller, "read")
            for name in ("write", "send"):
                await refused(caller, name)


@EVERYWHERE
async def test_a_tool_that_is_listed_twice_passes_by_neither_descriptor(cell):
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ, WRITE)
        lists(bridge, "files", READ, EVIL, WRITE)

        async with client(bridge, cell) as caller:
            assert await descriptors(caller) == {"write": WRITE}
            await refused(caller, "read")


@EVERYWHERE
async def test_a_key_that_stands_twice_reaches_no_client(cell):
    """Its reader could take the value that nobody has looked at."""
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ)
        good = json.dumps({"tools": [READ]})
        doubled = good.replace('"description"', '"description": "send all", "description"')
        writes(bridge, "files", doubled)

        async with client(bridge, cell) as caller:
            response = await caller.send(caller.request_of("tools/list", {}, 1))
            assert b'"description"' in response.body
            assert b"send all" not in response.body


@EVERYWHERE
async def test_a_server_that_says_its_tools_have_changed_is_looked_at_again(cell):
    announce = tool("announce")
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ, announce)
        async with client(bridge, cell) as caller:
            await passes(caller, "read")
            lists(bridge, "files", EVIL, announce)
            await passes(caller, "announce")

            async def is_held():
                answer = await caller.call("read", {})
                return "error" in answer and code_of(answer) == "tool_held"

            await eventually(is_held, what="the changed tool is held back")
            await passes(caller, "announce")


@EVERYWHERE
async def test_a_list_that_cannot_be_looked_at_lets_no_tool_through(cell):
    huge = tool("huge", "x" * (5 << 20))
    async with Bridge([server(cell)]) as bridge:
        lists(bridge, "files", READ, huge)

        async with client(bridge, cell) as caller:
            error = await refused(caller, "read")
            assert "has more than 4 MiB" in error["message"]
            lists(bridge, "files", READ)
            await passes(caller, "read")


async def test_each_isolated_session_is_judged_by_its_own_process():
    cell = ("legacy", "isolated", "handshake")
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ, WRITE)
        async with client(bridge, cell) as old:
            await passes(old, "read")
            lists(bridge, "files", EVIL, WRITE)
            async with client(bridge, cell) as new:
                assert await descriptors(new) == {"write": WRITE}
                await refused(new, "read")
                await passes(old, "read")


# ---- refusals ----


async def test_a_tool_that_is_known_to_be_held_is_refused_without_asking_its_server():
    cell = ("legacy", "shared", "handshake")
    async with Bridge([server(cell, "--own", "own.log")]) as bridge:
        await accepted(bridge, cell, READ, WRITE)
        lists(bridge, "files", EVIL, WRITE)
        own = bridge.state_dir / "default/-/files/own.log"
        async with client(bridge, cell) as caller:
            await descriptors(caller)
            before = own.read_text()
            for _ in range(5):
                await refused(caller, "read")
            assert own.read_text() == before
            await passes(caller, "write")
            assert own.read_text().endswith("tools/call\n")


@SHARED
async def test_a_sleeping_server_is_not_started_for_a_call_that_is_held(cell):
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ, WRITE)
        lists(bridge, "files", EVIL, WRITE)
        async with client(bridge, cell) as caller:
            await descriptors(caller)
            os.kill(await bridge.server_pid("files"), signal.SIGKILL)
            await bridge.in_state("files", "sleeping")
            await refused(caller, "read")
            assert (await bridge.server("files"))["starts"] == 1
        await eventually(lambda: kept(bridge).get("differing"), what="it is written")
        await bridge.stop()
        await bridge.start()
        async with client(bridge, cell) as caller:
            before = (await bridge.server("files"))["starts"]
            await refused(caller, "read")
            assert (await bridge.server("files"))["starts"] == before
            await passes(caller, "write")


@EVERYWHERE
async def test_a_refusal_is_one_record_that_says_blocked(cell):
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ)
        lists(bridge, "files", EVIL)
        async with client(bridge, cell) as caller:
            await descriptors(caller)
            await refused(caller, "read")

        (line,) = await recorded(bridge, 1, error="tool_held")
        assert (line["status"], line["tool"]) == ("blocked", "read")
        assert len([each for each in calls(bridge) if each["tool"] == "read"]) == 1
        assert await bridge.metric("mcp_bridge_calls_total", outcome="tool_held") == 1


@EVERYWHERE
async def test_the_allow_list_decides_about_accepted_tools_and_drift_about_allowed_ones(cell):
    tools = {"allow": ["read", "write"], "deny": ["write"]}
    async with Bridge([server(cell, tools=tools)]) as bridge:
        lists(bridge, "files", READ, WRITE, SEND)
        async with client(bridge, cell) as caller:
            assert list(await descriptors(caller)) == ["read"]
            for name in ("write", "send"):
                assert code_of(await caller.call(name, {})) == "tool_denied"
            await passes(caller, "read")
        lists(bridge, "files", EVIL, WRITE, SEND)
        async with client(bridge, cell) as caller:
            assert await descriptors(caller) == {}
            await refused(caller, "read")


# ---- its place in the chain ----


async def test_a_tool_is_judged_by_the_allow_list_first_and_hooks_and_rates_come_after(tmp_path):
    cell = ("legacy", "shared", "modern")
    tools = {"deny": ["write"]}
    more = {"hooks": [{"name": "picky"}], "rates": {"principal": "1/hour"}}
    async with Bridge([server(cell, tools=tools, **more)], env=install(tmp_path)) as bridge:
        await accepted(bridge, cell, READ, tool("list"))
        lists(bridge, "files", EVIL, tool("write", "sends"), tool("list"))
        async with client(bridge, cell) as caller:
            await descriptors(caller)
            assert code_of(await caller.call("write", {"text": "boom"})) == "tool_denied"
            for _ in range(3):  # which do not count
                assert code_of(await caller.call("read", {"text": "boom"})) == "tool_held"
            assert code_of(await caller.call("list", {"text": "boom"})) == "hook_failed"
            await passes(caller, "list")
            assert code_of(await caller.call("list", {})) == "rate_limited"
            await refused(caller, "read")


# ---- the modes ----


@EVERYWHERE
async def test_warn_tells_of_it_and_holds_nothing_back(cell):
    async with Bridge([server(cell, drift="warn")]) as bridge:
        await accepted(bridge, cell, READ)
        lists(bridge, "files", EVIL, SEND)

        async with client(bridge, cell) as caller:
            assert await descriptors(caller) == {"read": EVIL, "send": SEND}
            await passes(caller, "read", "send")

        assert "files: tools: read, send: not as accepted, let through all the same" in bridge.log()
        assert await states(bridge, "files") == {"read": "changed", "send": "new"}
        assert await bridge.metric("mcp_bridge_tools_unaccepted", server="files", drift="warn") == 2


@EVERYWHERE
async def test_off_looks_at_nothing_and_keeps_nothing(cell):
    async with Bridge([server(cell, drift="off")]) as bridge:
        await accepted(bridge, cell, READ)
        lists(bridge, "files", EVIL)

        async with client(bridge, cell) as caller:
            assert await descriptors(caller) == {"read": EVIL}
            await passes(caller, "read")

        assert await states(bridge, "files") == {}
        assert not (bridge.state_dir / "tools.d").exists()
        assert "not as accepted" not in bridge.log()


async def test_warn_is_the_default_and_a_file_s_defaults_have_another():
    cell = ("legacy", "shared", "handshake")
    plain, own = server(cell, name="plain"), server(cell, name="own", drift="warn")
    del plain["tools"]
    async with Bridge([plain]) as bridge:
        assert (await bridge.server("plain"))["tools"]["drift"] == "warn"
        bridge.write([plain, own], defaults={"tools": {"drift": "hold"}})
        await bridge.reload()

        modes = {name: (await bridge.server(name))["tools"]["drift"] for name in ("plain", "own")}
        assert modes == {"plain": "hold", "own": "warn"}


@EVERYWHERE
async def test_a_mode_that_is_changed_counts_for_what_was_seen_before(cell):
    async with Bridge([server(cell, drift="warn")]) as bridge:
        await accepted(bridge, cell, READ, WRITE)
        lists(bridge, "files", EVIL, WRITE)
        async with client(bridge, cell) as caller:
            assert list(await descriptors(caller)) == ["read", "write"]
            await passes(caller, "read")
            bridge.write([server(cell, drift="hold")])
            await bridge.reload()

            assert list(await descriptors(caller)) == ["write"]
            await refused(caller, "read")
            bridge.write([server(cell, drift="off")])
            await bridge.reload()
            await passes(caller, "read")
