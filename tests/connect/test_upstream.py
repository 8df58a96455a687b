"""Servers by url: sessions, policy, breaker and log are those of every other server.

Remote are a second proxy of ours, and the Python SDK's reference server, both over real HTTP.
"""

import asyncio
import json
import re
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from conformance import bars, cells
from support.bridge import Bridge
from support.client import error_of, text_of
from support.fakes import echo
from support.issuer import free_port
from support.reference import Reference
from support.remote import behind, near, remote
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

ERAS = ["session", "modern"]
MOST_MEMORY = 64  # MiB, with what large messages of other tests have left
CHANGED = "notifications/tools/list_changed"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair():
    """The far proxy with the real server, and the near one with the same by url."""
    async with Bridge([echo("files")]) as far, near(behind(far, "files")) as bridge:
        yield far, bridge


@asynccontextmanager
async def client(bridge, era, name="remote"):
    async with getattr(bridge, era)(name) as opened:
        yield opened


async def state_of(far):
    async with far.modern("files") as other:
        return json.loads(await other.text("state"))


@pytest.mark.parametrize("era", ERAS)
async def test_tools_of_another_proxy_are_listed_and_called(pair, era):
    far, bridge = pair
    async with client(bridge, era) as mine, client(far, era, "files") as direct:
        assert await mine.tools() == await direct.tools()
        assert await mine.text("echo", text="öß\u2028😀") == "öß\u2028😀"


@pytest.mark.parametrize("era", ERAS)
async def test_progress_comes_on_the_calls_own_stream(pair, era):
    _, bridge = pair
    async with client(bridge, era) as mine:
        message = mine.call_of("progress", {"nonce": era}, 1, "mine")
        response = await mine.send(message)
        *told, last = response.messages

        assert [each["params"]["progress"] for each in told] == [1, 2, 3]
        assert {each["params"]["progressToken"] for each in told} == {"mine"}
        assert last["id"] == 1


async def test_a_cancelled_call_is_cancelled_at_the_far_server(pair):
    far, bridge = pair
    async with client(bridge, "session") as mine:
        stream = await mine.open_stream(
            mine.call_of("progress", {"nonce": "c", "steps": 1, "then": "wait"}, 9, "p")
        )
        await stream.until("notifications/progress")
        before = (await state_of(far))["cancelled"]
        await mine.notify("notifications/cancelled", {"requestId": 9, "reason": "enough"})

        async def cancelled():
            return len((await state_of(far))["cancelled"]) == len(before) + 1

        await eventually(cancelled)
        await stream.close()


async def test_a_modern_call_whose_client_goes_is_cancelled_at_the_far_server(pair):
    far, bridge = pair
    async with client(bridge, "modern") as mine:
        stream = await mine.open_stream(
            mine.call_of("progress", {"nonce": "m", "steps": 1, "then": "wait"}, 9, "p")
        )
        await stream.until("notifications/progress")
        before = (await state_of(far))["cancelled"]
        await stream.close()

        async def cancelled():
            return len((await state_of(far))["cancelled"]) == len(before) + 1

        await eventually(cancelled)


async def test_what_the_far_server_says_by_itself_reaches_every_session(pair):
    far, bridge = pair
    async with client(bridge, "session") as mine:
        stream = await mine.listen()
        async with far.modern("files") as other:
            await other.text("list_changed", tool="news")

        await stream.until(CHANGED)
        await stream.close()
        assert "news" in await mine.tools()


async def test_large_messages_pass_both_ways(pair):
    _, bridge = pair
    async with client(bridge, "session") as mine:
        sent = "ä" * 1_000_000

        assert await mine.text("echo", text=sent) == sent


async def test_the_tool_rule_of_the_near_definition_counts(pair):
    far, _ = pair
    async with near(behind(far, "files", tools={"allow": ["echo"]})) as bridge:
        async with client(bridge, "session") as mine:
            assert await mine.tools() == ["echo"]
            assert await mine.text("echo", text="x") == "x"
            assert "tool" in error_of(await mine.call("pid", {}))["data"]["code"]


def words_of(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes()


async def test_header_texts_stand_in_no_argv(pair):
    far, bridge = pair
    async with client(bridge, "session") as mine:
        await mine.text("echo", text="x")
        pid = await bridge.server_pid("remote")
        words = words_of(pid)

        assert far.url("files").encode() in words
        assert far.token("files").encode() not in words


def memory_of(pid):
    """MiB that the process adds to the host (proc(5), smaps_rollup)."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return int(re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)[1]) // 1024


async def test_its_program_takes_little_memory(pair, record_property):
    _, bridge = pair
    async with client(bridge, "session") as mine:
        for _ in range(100):
            await mine.text("echo", text="x" * 100)
        found = memory_of(await bridge.server_pid("remote"))
        record_property("memory_mib", found)

    assert found < MOST_MEMORY


async def test_questions_of_an_isolated_far_server_reach_the_client_and_back(need):
    need("clients")
    definition = cells.definition(bars.ISOLATED, "both", "asks")
    async with Bridge([definition]) as far:
        asks = behind(far, "asks", "asks", sessions="isolated")
        async with near(asks) as bridge, bridge.session("asks") as mine:
            call = mine.call_of("test_elicitation", {"message": "who?"}, 1)
            stream = await mine.open_stream(call)
            question = await stream.until("elicitation/create")
            content = {"username": "me", "email": "m@e"}
            answer = {"action": "accept", "content": content}
            await mine.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})

            assert "m@e" in text_of(await stream.until(1))
            await stream.close()


# ---- a far end that goes, and comes back ----


async def test_a_far_proxy_that_is_killed_fails_the_call_at_once_and_is_used_again():
    host = {"listen": {"port": free_port()}}
    async with Bridge([echo("files")], host=host) as far, near(behind(far, "files")) as bridge:
        async with client(bridge, "session") as mine:
            assert await mine.text("echo", text="before") == "before"
            waiting = asyncio.create_task(mine.call("wait", {"tag": "w"}))

            async def arrived():
                return "w" in (await state_of(far))["waiting"]

            await eventually(arrived)
            far.process.kill()
            await far.process.wait()
            lost = error_of(await waiting)
            assert "connect" in lost["message"] or "ended" in lost["message"]

            away = error_of(await mine.call("echo", {"text": "away"}))
            assert "connect" in json.dumps(away)
            await far.start()

            async def back():
                answer = await mine.call("echo", {"text": "back"})
                return "result" in answer and text_of(answer) == "back"

            await eventually(back, within=20)


async def test_a_far_end_that_stays_away_opens_the_breaker_like_a_dead_server():
    async with Bridge([echo("files")]) as far:
        gone = behind(far, "files", breaker={"crashes": 2, "window": "60s"})
    async with near(gone) as bridge, bridge.modern("remote") as mine:
        for _ in range(3):
            failed = error_of(await mine.call("echo", {"text": "x"}))
            assert failed["data"]["code"] == "start_failed"
            assert "connection refused" in json.dumps(failed)
        refused = error_of(await mine.call("echo", {"text": "x"}))

        assert refused["data"]["code"] == "breaker_open"

        async def ended():
            row = await bridge.server("remote")
            return row["state"] == "broken" and row

        row = await eventually(ended)  # its last process may still be on its way out
        assert "connection refused" in json.dumps(row["last_death"])


# ---- the Python SDK's reference server ----


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def reference():
    async with Reference() as running:
        yield running


@pytest.mark.parametrize("era", ERAS)
async def test_the_reference_server_is_listed_called_and_tells_progress(reference, era):
    async with near(remote(reference.url)) as bridge, client(bridge, era) as mine:
        assert await mine.tools() == ["add", "steps", "wait", "seen"]
        assert await mine.text("add", left=2, right=40) == "42"
        response = await mine.send(mine.call_of("steps", {"count": 3}, 1, "p"))

        assert [m["params"]["progress"] for m in response.messages[:-1]] == [1, 2, 3]


@pytest.mark.parametrize("era", ERAS)
async def test_the_reference_server_hears_of_a_cancellation(reference, era):
    async with near(remote(reference.url)) as bridge, client(bridge, era) as mine:
        call = mine.call_of("wait", {"tag": era}, 7)
        waiting = asyncio.create_task(mine.send(call))

        async def begun():
            return era in await mine.text("seen")

        await eventually(begun)
        if era == "session":
            await mine.notify("notifications/cancelled", {"requestId": 7})
        else:
            waiting.cancel()

        async def cancelled():
            return era in (await mine.text("seen")).partition("cancelled")[2]

        await eventually(cancelled)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def calls_open(bridge):
    return (await bridge.server("remote"))["open_calls"]


@pytest.mark.parametrize("era", ERAS)
async def test_the_reference_server_killed_and_back_is_used_again(era):
    async with Reference() as own, near(remote(own.url)) as bridge:
        async with client(bridge, era) as mine:
            assert await mine.text("add", left=1, right=1) == "2"
            waiting = asyncio.create_task(mine.call("wait", {"tag": "w"}))
            await eventually(lambda: calls_open(bridge))
            await own.kill()
            assert "connect" in error_of(await waiting)["message"]
            assert "connect" in json.dumps(
                error_of(await mine.call("add", {"left": 1, "right": 1}))
            )
            await own.start()

            async def back():
                answer = await mine.call("add", {"left": 2, "right": 2})
                return "result" in answer and text_of(answer) == "4"

            await eventually(back, within=20)
