"""Tools that an administrator accepts: when they count, what is kept, and what people see."""

import asyncio
import json
import signal

from support.bridge import Bridge
from support.drifting import (
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
)
from support.waiting import eventually

# ---- accepting ----


async def test_sessions_hear_that_their_list_is_another_when_tools_are_accepted():
    for sessions in ("shared", "isolated"):
        cell = ("legacy", sessions, "handshake")
        async with Bridge([server(cell)]) as bridge:
            await accepted(bridge, cell, READ)
            lists(bridge, "files", EVIL)
            async with client(bridge, cell) as caller:
                await descriptors(caller)
                stream = await caller.listen()
                try:
                    await tools_command(bridge, "accept", "files")
                    assert await stream.until("notifications/tools/list_changed")
                finally:
                    await stream.close()


async def test_only_what_was_looked_at_is_accepted():
    cell = ("legacy", "shared", "handshake")
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ)
        lists(bridge, "files", tool("read", "looked at"))
        async with client(bridge, cell) as caller:
            await descriptors(caller)
            seal = json.loads((await tools_command(bridge, "files", "--json")).out)["seal"]
            lists(bridge, "files", EVIL)
            await descriptors(caller)

            ran = await tools_command(bridge, "accept", "files", "--seen", seal)

            assert ran.status == 65
            assert "other tools differ than when that was looked at" in ran.err
            await refused(caller, "read")
            lists(bridge, "files", tool("read", "looked at"))
            await descriptors(caller)
            assert (await tools_command(bridge, "accept", "files", "--seen", seal)).status == 0
            await passes(caller, "read")


async def test_a_tool_that_does_not_differ_cannot_be_accepted_and_nothing_else_is():
    cell = ("legacy", "shared", "handshake")
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ, WRITE)
        lists(bridge, "files", EVIL, WRITE)
        async with client(bridge, cell) as caller:
            await descriptors(caller)
            for name, why in (("write", "accepted already"), ("nope", "not listed")):
                ran = await tools_command(bridge, "accept", "files", "read", name, "--json")
                assert (ran.status, json.loads(ran.out)["exit"]) == (65, 65)
                assert f"the tool {name} is {why}; nothing is accepted" in ran.err
            await refused(caller, "read")
        ran = await tools_command(bridge, "accept", "nope")
        assert ran.status == 66


# ---- what is kept ----


@EVERYWHERE
async def test_what_was_accepted_and_what_is_held_survive_a_kill_of_the_proxy(cell):
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ, WRITE)
        lists(bridge, "files", EVIL, WRITE, SEND)
        async with client(bridge, cell) as caller:
            await descriptors(caller)
        await tools_command(bridge, "accept", "files", "send")
        await eventually(lambda: kept(bridge).get("differing"), what="it is written")
        await killed(bridge)

        assert await states(bridge, "files") == {
            "read": "changed",
            "send": "accepted",
            "write": "accepted",
        }
        async with client(bridge, cell) as caller:
            assert await descriptors(caller) == {"write": WRITE, "send": SEND}
            await refused(caller, "read")


async def killed(bridge):
    """SIGKILL, and another proxy on the same directories."""
    assert bridge.process is not None
    bridge.process.send_signal(signal.SIGKILL)
    await bridge.process.wait()
    await eventually(lambda: not bridge.processes(), within=30, what="its servers have ended")
    await bridge.start()


async def writes_or_ends(accepting, folder, before):
    """Wait until a file has come into the folder, or the command has ended without."""
    await eventually(
        lambda: accepting.done() or set(folder.iterdir()) != before,
        within=30,
        what="the proxy writes, or has written",
    )


async def test_a_proxy_that_is_killed_while_it_accepts_has_accepted_all_or_nothing():
    cell = ("legacy", "shared", "handshake")
    many = [tool(f"tool-{number}") for number in range(200)]
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ)
        lists(bridge, "files", READ, *many)
        async with client(bridge, cell) as caller:
            await descriptors(caller)
        folder = bridge.state_dir / "tools.d"
        await eventually(lambda: kept(bridge).get("differing"), what="it is written")
        for _ in range(3):
            before = set(folder.iterdir())
            accepting = asyncio.create_task(tools_command(bridge, "accept", "files"))
            await writes_or_ends(accepting, folder, before)
            await killed(bridge)
            ran = await accepting
            found = await states(bridge, "files")

            new = [name for name, state in found.items() if state == "new"]
            assert len(found) == 201
            assert len(new) in (0, 200)
            if ran.status == 0:
                assert not new


@EVERYWHERE
async def test_a_broken_file_is_named_and_lets_nothing_through_until_it_is_accepted(cell):
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ)
        path = bridge.state_dir / "tools.d/files.json"
        await eventually(path.exists, what="it is written")
        await bridge.stop()
        path.write_text("{", encoding="utf-8")
        await bridge.start()

        (problem,) = (await bridge.status())["problems"]
        assert str(path) in problem
        assert "not what the proxy writes" in problem
        assert "mcp-bridge tools accept files" in problem
        assert str(path) in bridge.log()
        async with client(bridge, cell) as caller:
            await refused(caller, "read")
            ran = await tools_command(bridge, "accept", "files")
            assert ran.status == 0, ran
            await passes(caller, "read")
        assert (await bridge.status())["problems"] == []
        assert path.with_name("files.json.broken").read_text(encoding="utf-8") == "{"


async def test_a_disk_that_takes_nothing_accepts_nothing():
    cell = ("legacy", "shared", "handshake")
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ)
        folder = bridge.state_dir / "tools.d"
        await eventually((folder / "files.json").exists, what="it is written")
        folder.rename(folder.with_name("moved"))
        folder.write_text("in the way", encoding="utf-8")
        lists(bridge, "files", EVIL)
        async with client(bridge, cell) as caller:
            await descriptors(caller)

            ran = await tools_command(bridge, "accept", "files")

            assert ran.status == 65
            assert "nothing is accepted" in ran.err
            await refused(caller, "read")
        await eventually(lambda: "cannot be written" in bridge.log(), what="it is told")


async def test_a_removed_server_s_tools_are_forgotten():
    cell = ("legacy", "shared", "handshake")
    async with Bridge([server(cell), server(cell, name="other")]) as bridge:
        await accepted(bridge, cell, READ)
        await accepted(bridge, cell, READ, name="other")
        folder = bridge.state_dir / "tools.d"
        both = {"files.json", "other.json"}
        await eventually(
            lambda: folder.is_dir() and {each.name for each in folder.iterdir()} == both,
            what="both are written",
        )
        process = await asyncio.create_subprocess_exec(
            *("mcp-bridge", *bridge.options, "remove", "files"), stdin=asyncio.subprocess.DEVNULL
        )
        async with asyncio.timeout(60):
            assert await process.wait() == 0

        assert [each.name for each in folder.iterdir()] == ["other.json"]


# ---- what people see ----


async def test_the_command_shows_each_tool_and_what_differs():
    cell = ("legacy", "shared", "handshake")
    async with Bridge([server(cell)]) as bridge:
        await accepted(bridge, cell, READ, WRITE, tool("list"))
        changed = {**READ, "description": "Reads.\nAnd sends.", "annotations": {"title": "\x1b[2J"}}
        lists(bridge, "files", changed, WRITE, SEND)
        async with client(bridge, cell) as caller:
            await descriptors(caller)

        ran = await tools_command(bridge, "files")

        table, *differences = ran.out.split("\n\n")
        rows = {line.split()[0]: line.split()[1] for line in table.splitlines()}
        assert rows == {
            "TOOL": "STATE",
            "list": "gone",
            "read": "changed",
            "send": "new",
            "write": "accepted",
        }
        changed, new = (each.splitlines() for each in differences)
        assert changed == [
            "read: changed",
            '  - description: "the tool read"',
            '  + annotations.title: "\\u001b[2J"',
            "  + description:",
            "  +     Reads.",
            "  +     And sends.",
            '    inputSchema.properties.path.type: "string"',
        ]
        assert new == [
            "send: new",
            '  + description: "the tool send"',
            '  + inputSchema.properties.path.type: "string"',
            '  + inputSchema.type: "object"',
            '  + name: "send"',
        ]
        assert "once they are looked at: mcp-bridge tools accept files --seen " in ran.err
        overview = json.loads((await tools_command(bridge, "--json")).out)["servers"]
        assert overview == [
            *[
                {
                    "server": "files",
                    "drift": "hold",
                    "accepted": 1,
                    "new": 1,
                    "changed": 1,
                    "gone": 1,
                }
            ]
        ]
        head, row = (await tools_command(bridge)).out.splitlines()
        assert head.split() == ["SERVER", "DRIFT", "ACCEPTED", "NEW", "CHANGED", "GONE"]
        assert row.split() == ["files", "hold", "1", "1", "1", "1"]
        assert await bridge.metric("mcp_bridge_tools_unaccepted", server="files", drift="hold") == 2
