"""A server that this host cannot give what it asks for holds up no other: without systemd."""

import asyncio
import json

import pytest

from autobot_mcp_bridge.cli.main import main
from support.bridge import Bridge
from support.client import answer_to, code_of
from support.fakes import echo
from support.waiting import eventually


async def word(bridge, instance):
    """The text of an answered call, the stable word of an error, or 401 of an unknown server."""
    async with bridge.modern(instance) as client:
        response = await client.send(client.call_of("echo", {"text": "served"}, 1))
        if response.status == 401:
            return "401"
        answer = answer_to(response, 1)
        return code_of(answer) if "error" in answer else answer["result"]["content"][0]["text"]


async def says(bridge, instance, wanted):
    return await word(bridge, instance) == wanted


@pytest.fixture
def command(capsys):
    async def command(bridge, *words):
        status = await asyncio.to_thread(main, [*bridge.options, *words])
        out, err = capsys.readouterr()
        return status, out, err

    return command


async def test_a_new_one_is_not_served_and_says_why_and_the_others_come_into_force(command):
    async with Bridge([echo("first")]) as bridge:
        nowhere = bridge.root / "nowhere"
        bridge.write([echo("first"), echo("lacks", cwd=str(nowhere)), echo("second")])
        await eventually(lambda: says(bridge, "second", "served"))

        assert await word(bridge, "lacks") == "definition_refused"
        status, _, err = await command(bridge, "reload")
        assert status == 78
        assert "in force, but for" in err and "lacks: " in err and str(nowhere) in err
        rows = json.loads((await command(bridge, "list", "--json"))[1])["servers"]
        (row,) = (row for row in rows if row["name"] == "lacks")
        assert row["state"] == "refused" and str(nowhere) in row["refused"]
        status, out, _ = await command(bridge, "check")
        assert (status, "$.servers[1].cwd" in out) == (65, True)
        assert json.loads((await bridge.health()).body) == {"status": "ok"}

        nowhere.mkdir(mode=0o755)
        assert (await command(bridge, "reload"))[0] == 0
        assert await word(bridge, "lacks") == "served"
        assert (await command(bridge, "check"))[0] == 0


async def test_one_that_runs_goes_on_as_it_was_and_is_marked(command):
    async with Bridge([echo("a"), echo("b")]) as bridge, bridge.session("a") as running:
        pid = await running.text("pid")
        gone = str(bridge.root / "gone")
        bridge.write([echo("a", cwd=gone, tools={"deny": ["pid"]}), echo("b"), echo("c")])
        await eventually(lambda: says(bridge, "c", "served"))

        assert await running.text("pid") == pid
        shown = (await command(bridge, "status", "a"))[1]
        assert "not in force" in shown and gone in shown
        listed = json.loads((await command(bridge, "list", "--json"))[1])["servers"]
        assert {row["name"]: row["state"] for row in listed}["a"] == "ready"
        assert [row["name"] for row in listed if row["refused"]] == ["a"]

        bridge.write([echo("a", tools={"deny": ["pid"]}), echo("b"), echo("c")])
        await eventually(lambda: denied(running))


async def denied(client):
    return "error" in await client.call("pid")
