"""Clients and servers of both eras on one URL: who speaks what to whom (PROTOCOL G)."""

import asyncio

import pytest

from support.bridge import Bridge
from support.client import MODERN, answer_to
from support.eras import conformance, heard, modern

HELLO = ["initialize", "notifications/initialized"]


def told(bridge, name):
    """The methods that each process of the server was told, in the order of the processes."""
    path = bridge.state_dir / "default" / "-" / name / "heard"
    found = {}
    for line in path.read_text().splitlines():
        pid, _, method = line.partition(" ")
        found.setdefault(pid, []).append(method)
    return list(found.values())


async def both(bridge, name):
    """A client of each era calls a tool."""
    async with bridge.session(name) as old, modern(bridge, name) as new:
        assert await old.text("gw_pid") == await new.text("gw_pid")


WAYS = [
    ("modern", "unknown", [["server/discover"]]),
    ("both", "unknown", [["server/discover"]]),
    ("pinned", "unknown", [["server/discover"]]),
    ("legacy", "unknown", [["server/discover", *HELLO]]),
    ("legacy", "invalid", [["server/discover", *HELLO]]),
    ("legacy", "silent", [["server/discover", *HELLO]]),
    ("legacy", "exits", [["server/discover"], HELLO]),
]


@pytest.mark.requirement("G1", "G2", "G5")
@pytest.mark.parametrize(("era", "discover", "first"), WAYS, ids=lambda value: str(value)[:12])
async def test_both_eras_clients_reach_every_server_and_its_second_start_asks_nothing(
    era, discover, first
):
    server = conformance("any", era, "--discover", discover, "--log", "heard")
    server["timeouts"] = {"start": "10s"}
    async with Bridge([server]) as bridge:
        await both(bridge, "any")
        row = await bridge.server("any")
        assert (row["crashes"], row["starts"]) == (0, len(first))
        spoken = zip(told(bridge, "any"), first, strict=True)
        assert [words[: len(known)] for words, known in spoken] == first
        await bridge.command("any", "stop")
        await bridge.in_state("any", "stopped")
        await bridge.command("any", "start")
        await both(bridge, "any")
        second = told(bridge, "any")[-1]
        assert second[:1] == (["initialize"] if era == "legacy" else ["server/discover"])
        assert (await bridge.server("any"))["starts"] == len(first) + 1


@pytest.mark.requirement("G1")
async def test_a_server_that_the_question_has_silenced_works_at_its_second_start():
    server = conformance("any", "legacy", "--discover", "hangs", timeouts={"start": "1s"})
    async with Bridge([server]) as bridge, modern(bridge, "any") as client:
        assert "error" in await client.call("gw_pid")
        assert "result" in await client.call("gw_pid")


@pytest.mark.requirement("G2")
async def test_a_process_hears_one_era_only_whoever_calls():
    for era, absent in (("modern", set(HELLO)), ("legacy", {"subscriptions/listen"})):
        async with Bridge([conformance("any", era)]) as bridge:
            async with bridge.session("any") as old, modern(bridge, "any") as new:
                await old.request("logging/setLevel", {"level": "debug"})
                await new.request("server/discover")
                assert not absent & set(await heard(new))


@pytest.mark.requirement("G6", "E2")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_discover_names_the_versions_of_both_eras_and_each_is_served(era):
    async with Bridge([conformance("any", era)]) as bridge:
        async with modern(bridge, "any") as client:
            result = (await client.request("server/discover"))["result"]
            assert result["instructions"] == "A server for tests."
        assert result["supportedVersions"][0] == MODERN
        for version in result["supportedVersions"][1:]:
            async with bridge.session("any", version=version) as session:
                assert session.version == version
                assert session.initialized["serverInfo"]["name"] == "conformance"


@pytest.mark.requirement("E18")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_logs_reach_only_the_modern_request_that_asked_for_them(era):
    level = {"_meta": {"io.modelcontextprotocol/logLevel": "info"}}
    async with Bridge([conformance("any", era)]) as bridge, modern(bridge, "any") as client:
        for more, count in ((level, 3), ({}, 0)):
            message = client.request_of("tools/call", {"name": "test_logging_tool", **more}, 1)
            found = (await client.send(message)).messages
            logs = [each for each in found if each.get("method") == "notifications/message"]
            assert len(logs) == count


@pytest.mark.requirement("E5")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_mirrored_parameter_must_equal_its_header(era):
    async with Bridge([conformance("any", era)]) as bridge, modern(bridge, "any") as client:
        right = client.call_of("test_x_mcp_header", {"region": "eu"}, 1)
        for header, status in (("eu", 200), ("us", 400), (None, 400)):
            response = await client.send(right, headers={"Mcp-Param-Region": header})
            assert response.status == status, header
            if status == 400:
                assert answer_to(response, 1)["error"]["code"] == -32020
        absent = client.call_of("test_x_mcp_header", {}, 1)
        assert (await client.send(absent)).status == 200
        response = await client.send(absent, headers={"Mcp-Param-Region": "eu"})
        assert response.status == 400


async def test_the_tools_of_a_new_process_are_asked_for_once_whoever_calls_first():
    async with Bridge([conformance("any", "modern")]) as bridge, modern(bridge, "any") as client:
        first = asyncio.create_task(client.text("gw_pid"))
        calls = [asyncio.create_task(client.text("gw_pid")) for _ in range(20)]
        first.cancel()  # whoever asked goes, the others still get what was asked for
        assert len(set(await asyncio.gather(*calls))) == 1
        assert (await heard(client)).count("tools/list") == 1


async def test_questions_of_the_proxys_own_to_a_busy_server_do_not_end_it():
    """Their deadline is short, and a server that works on one call at a time may be busy."""
    server = conformance("any", "legacy", "--discover", "unknown")
    async with Bridge([server]) as bridge, modern(bridge, "any") as client:
        pid = await client.text("gw_pid")
        uris = {"notifications": {"resourceSubscriptions": ["test://one"]}}
        busy = asyncio.create_task(client.call("gw_block", {"seconds": 12}))
        for _ in range(4):
            stream = await client.open_stream(client.request_of("subscriptions/listen", uris, 1))
            await stream.event()
            await stream.close()
        assert "result" in await busy
        assert await client.text("gw_pid") == pid
