"""Streams that outlive their connections (PROTOCOL C3, C6-C12)."""

import asyncio
import json
import os
from random import Random, SystemRandom

import pytest
import pytest_asyncio

from support.bridge import Bridge
from support.client import answer_to, code_of, text_of
from support.cut import read_through_cuts
from support.fakes import echo
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHANGED = "notifications/tools/list_changed"
OLDER = ["2025-06-18", "2025-03-26"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    async with Bridge([echo("files", timeouts={"call": "60s"})]) as running:
        yield running


async def begun(session, ident=1, tag="t"):
    """The stream of a call that has sent one notification and does not end."""
    message = session.call_of("progress", {"nonce": tag, "steps": 1, "then": "wait"}, ident, "p")
    stream = await session.open_stream(message)
    await stream.until("notifications/progress")
    return stream


async def release(bridge, tag):
    async with bridge.modern("files") as other:
        assert await other.text("release", tag=tag) == "released"


async def change(bridge, tool):
    async with bridge.modern("files") as caller:
        await caller.text("list_changed", tool=tool)


async def rest_of(stream):
    found = []
    while (message := await stream.event()) is not None:
        found.append(message.get("method", "answer"))
    await stream.close()
    return found


@pytest.mark.requirement("C7")
async def test_a_stream_begins_with_an_id_and_no_data_at_2025_11_25(bridge):
    async with bridge.session("files") as session:
        own = await session.listen()
        called = await begun(session, tag="primed")
        await release(bridge, "primed")
        await called.until(1)
        await change(bridge, "primed")
        await own.until(CHANGED)
        for stream in (own, called):
            assert stream.primers == 1
            assert stream.retry is not None
            await stream.close()


@pytest.mark.requirement("C7")
@pytest.mark.parametrize("version", OLDER)
async def test_an_older_client_gets_no_event_without_data(bridge, version):
    async with bridge.session("files", version=version) as session:
        own = await session.listen()
        called = await begun(session, tag=version)
        await release(bridge, version)
        assert await rest_of(called) == ["answer"]
        await session.delete()
        assert await own.event() is None
        for stream in (own, called):
            assert (stream.primers, stream.retry) == (0, None)
        await own.close()


@pytest.mark.requirement("E11")
async def test_a_modern_stream_has_no_ids(bridge):
    async with bridge.modern("files") as client:
        stream = await client.open_stream(client.call_of("progress", {"nonce": "n"}, 1, "t"))
        assert await rest_of(stream) == ["notifications/progress"] * 3 + ["answer"]
        assert (stream.last_id, stream.primers, stream.retry) == (None, 0, None)


@pytest.mark.requirement("C6")
async def test_ids_are_unique_in_a_session_and_name_their_stream(bridge):
    async with bridge.session("files") as session:
        own = await session.listen()
        ids = {}
        for number in range(3):
            stream = await session.open_stream(
                session.call_of("progress", {"nonce": "n"}, number, "t")
            )
            while await stream.event() is not None:
                assert stream.last_id not in ids
                ids[stream.last_id] = number
            await stream.close()
        await change(bridge, "ids")
        await own.until(CHANGED)
        assert own.last_id not in ids
        names = {(found.partition(".")[0], number) for found, number in ids.items()}
        assert len(names) == len({name for name, _ in names}) == 3
        assert own.last_id.partition(".")[0] not in {name for name, _ in names}
        await own.close()


@pytest.mark.requirement("C8", "C10", "C3")
@pytest.mark.parametrize("version", ["2025-11-25", *OLDER])
async def test_a_dropped_call_goes_on_and_its_answer_can_be_fetched(bridge, version):
    async with bridge.session("files", version=version) as session:
        own = await session.listen()
        stream = await begun(session, ident=7, tag=f"drop {version}")
        last = stream.last_id
        await stream.close()
        await release(bridge, f"drop {version}")
        again = await session.listen(after=last)
        assert again.status == 200
        assert text_of(await again.until(7)) == f"drop {version}"
        assert await again.event() is None
        response = await session.send(session.call_of("echo", {"text": "free"}, 7))
        assert text_of(answer_to(response, 7)) == "free"  # its id is in flight no more
        await change(bridge, "own")
        assert (await own.event())["method"] == CHANGED  # and no answer before it
        await again.close()
        await own.close()


@pytest.mark.requirement("C8")
async def test_a_resumed_stream_goes_on_with_what_comes_later(bridge):
    async with bridge.session("files") as session:
        stream = await begun(session, ident="x", tag="later")
        stream.reset()
        again = await session.listen(after=stream.last_id)
        await release(bridge, "later")
        assert text_of(await again.until("x")) == "later"
        await again.close()


@pytest.mark.requirement("C8")
async def test_each_event_after_the_last_is_replayed_and_no_other(bridge):
    async with bridge.session("files") as session:
        stream = await session.open_stream(session.call_of("progress", {"nonce": "n"}, 1, "t"))
        ids, seen = [], []
        while (message := await stream.event()) is not None:
            ids.append(stream.last_id)
            seen.append(message)
        await stream.close()
        for index, event_id in enumerate(ids):
            again = await session.listen(after=event_id)
            replayed = []
            while (message := await again.event()) is not None:
                replayed.append((again.last_id, message))
            assert replayed == list(zip(ids, seen, strict=True))[index + 1 :]
            await again.close()


@pytest.mark.requirement("C8")
async def test_the_own_stream_is_resumed_after_what_was_lost_on_the_way(bridge):
    async with bridge.session("files") as session:
        own = await session.listen()
        await change(bridge, "first")
        await own.until(CHANGED)
        first = own.last_id
        await change(bridge, "second")
        await own.until(CHANGED)
        await own.close()  # as if the second had not arrived
        again = await session.listen(after=first)
        assert (await again.event())["method"] == CHANGED
        await change(bridge, "third")
        assert (await again.event())["method"] == CHANGED
        await again.close()


@pytest.mark.requirement("C9")
async def test_an_id_that_was_never_made_is_400(bridge):
    async with bridge.session("files") as session, bridge.session("files") as other:
        theirs = await begun(other, tag="theirs")
        own = await session.listen()
        await change(bridge, "made")
        await own.until(CHANGED)
        name, _, number = own.last_id.partition(".")
        wrong = ["", "1", "x.1", ".", f"{name}.", f"{name}.-1", f"{name}.{int(number) + 1}"]
        wrong += [f"{name}.{'9' * 5000}", f"{name}.x", "ä.1", f"{name}.²", theirs.last_id]
        for event_id in wrong:
            refused = await session.send(
                method="GET", headers={"Accept": "text/event-stream", "Last-Event-ID": event_id}
            )
            assert refused.status == 400, event_id
        again = await session.listen(after=own.last_id)
        assert again.status == 200
        await release(bridge, "theirs")
        for stream in (again, own, theirs):
            await stream.close()


@pytest.mark.requirement("C9")
async def test_an_id_whose_successors_were_dropped_is_400_and_later_ones_go_on():
    limits = {"limits": {"stream_events": 8}}
    async with Bridge([echo("files")], host=limits) as bridge, bridge.session("files") as session:
        message = session.call_of("progress", {"nonce": "n", "steps": 20}, 1, "t")
        stream = await session.open_stream(message)
        while (answer := await stream.event()) is not None:
            last = answer
        name = stream.last_id.partition(".")[0]
        final = int(stream.last_id.partition(".")[2])
        assert "result" in last
        old = await session.listen(after=f"{name}.{final - 9}")
        assert old.status == 400
        held = await session.listen(after=f"{name}.{final - 8}")
        assert len(await rest_of(held)) == 8
        for each in (old, stream):
            await each.close()


@pytest.mark.requirement("C9", "C10")
async def test_a_streamed_answer_is_forgotten_after_its_time():
    limits = {"limits": {"resume": "1s"}}
    async with Bridge([echo("files")], host=limits) as bridge, bridge.session("files") as session:
        stream = await session.open_stream(session.call_of("progress", {"nonce": "n"}, 1, "t"))
        await stream.until(1)

        async def refused():
            again = await session.listen(after=stream.last_id)
            await again.close()
            return again.status == 400

        await eventually(refused, within=30)
        await stream.close()


@pytest.mark.requirement("C8")
@pytest.mark.parametrize("kind", ["own", "call"])
async def test_the_newest_reader_wins(bridge, kind):
    async with bridge.session("files") as session:
        first = await (session.listen() if kind == "own" else begun(session, tag="newest"))
        if kind == "own":
            await change(bridge, "newest")
            await first.until(CHANGED)
        second = await session.listen(after=first.last_id)
        assert await first.event() is None
        if kind == "own":
            await change(bridge, "newest again")
            assert (await second.event())["method"] == CHANGED
        else:
            await release(bridge, "newest")
            assert text_of(await second.until(1)) == "newest"
        await first.close()
        await second.close()


@pytest.mark.requirement("C10")
async def test_a_client_that_dropped_its_call_can_still_cancel_it(bridge):
    async with bridge.session("files") as session:
        stream = await begun(session, ident=5, tag="given up")
        await stream.close()
        await session.notify("notifications/cancelled", {"requestId": 5})
        again = await session.listen(after=stream.last_id)
        assert code_of(await again.until(5)) == "cancelled"
        await again.close()
        assert "given up" in json.loads(await session.text("state"))["cancelled"]


@pytest.mark.requirement("C10")
async def test_a_call_that_had_no_stream_yet_goes_on_and_cannot_be_resumed(bridge):
    async with bridge.session("files") as session:
        call = session.call_of("wait", {"tag": "unheard"}, 9)
        pending = asyncio.create_task(session.send(call))

        async def waiting():
            async with bridge.modern("files") as other:
                return "unheard" in json.loads(await other.text("state"))["waiting"]

        await eventually(waiting)
        pending.cancel()
        await asyncio.gather(pending, return_exceptions=True)
        assert await waiting()
        await release(bridge, "unheard")


@pytest.mark.requirement("C7", "C10")
async def test_a_call_that_takes_its_time_gets_a_stream_that_can_be_resumed(bridge):
    async with bridge.session("files") as session:
        stream = await session.open_stream(session.call_of("wait", {"tag": "slow"}, 2))
        assert stream.header("Content-Type") == "text/event-stream"
        first = await stream.first_id()
        await stream.close()
        await release(bridge, "slow")
        again = await session.listen(after=first)
        assert text_of(await again.until(2)) == "slow"
        await again.close()


@pytest.mark.requirement("B6", "C10")
async def test_with_its_session_ends_what_was_kept_for_it(bridge):
    async with bridge.session("files") as session:
        stream = await begun(session, tag="ended")
        await stream.close()
        await session.delete()
        again = await session.listen(after=stream.last_id)
        assert again.status == 404
        await release(bridge, "ended")
        await again.close()


@pytest.mark.requirement("C12", "C10")
async def test_a_call_whose_server_dies_unwatched_has_its_error_kept():
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        stream = await begun(session, ident=3, tag="dies")
        await stream.close()
        await session.send(session.call_of("kill", {}))
        again = await session.listen(after=stream.last_id)
        assert code_of(await again.until(3)) == "server_crashed"
        await again.close()


@pytest.mark.requirement("C11")
async def test_a_stream_that_ends_with_the_proxy_says_when_to_come_back():
    async with Bridge([echo("files", timeouts={"stop": "1s"})]) as bridge:
        async with bridge.session("files") as session:
            stream = await begun(session, ident=4, tag="end")
            ending = asyncio.create_task(bridge.stop())
            assert "error" in await stream.until(4)
            assert stream.retry is not None
            await ending
            await stream.close()


async def test_a_resumed_answer_is_the_one_of_the_call(bridge):
    """Two calls of one session, both dropped, each fetched by its own id."""
    async with bridge.session("files") as session:
        one, two = await begun(session, 1, "one"), await begun(session, "1", "two")
        await one.close()
        await two.close()
        await release(bridge, "two")
        await release(bridge, "one")
        first, second = await session.listen(one.last_id), await session.listen(two.last_id)
        assert text_of(await first.until(1)) == "one"
        assert text_of(await second.until("1")) == "two"
        response = await session.send(session.call_of("echo", {"text": "plain"}, 2))
        assert text_of(answer_to(response, 2)) == "plain"
        await first.close()
        await second.close()


@pytest.mark.requirement("C2", "C6", "C8", "C10")
async def test_every_event_is_seen_once_wherever_connections_are_cut(bridge):
    """Twelve calls and the session's own stream, each cut again and again at any byte."""
    seed = int(os.environ.get("CUT_SEED") or SystemRandom().randrange(2**32))
    print(f"CUT_SEED={seed}")
    random = Random(seed)
    steps, calls = 30, 12
    sessions = [bridge.session("files") for _ in range(4)]
    for session in sessions:
        await session.initialize()

    async def one(number, seed):
        session = sessions[number % len(sessions)]
        tag = f"{number} " + "x" * Random(seed).randrange(200)
        arguments = {"nonce": tag, "steps": steps, "delay": 0.01}
        message = session.call_of("progress", arguments, number, f"token {number}")
        stream = await session.open_stream(message)
        seen = await read_through_cuts(session, stream, Random(seed), steps + 1)
        *progress, answer = seen.messages
        assert [each["params"]["progress"] for each in progress] == list(range(1, steps + 1))
        assert {each["params"]["message"] for each in progress} == {tag}
        assert text_of(answer) == tag
        return seen

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(number, random.random())) for number in range(calls)]
    async with bridge.session("files") as listener:
        own = await listener.listen()
        changes = asyncio.create_task(read_through_cuts(listener, own, random, 20))
        for _ in range(20):
            await change(bridge, "cut")
        tasks.append(changes)
        seen = await changes
        assert [message["method"] for message in seen.messages] == [CHANGED] * 20
    found = [task.result() for task in tasks]
    for each in found:
        assert len(set(each.ids)) == len(each.ids)
    cuts = sum(each.cuts for each in found)
    print(f"{cuts} cuts")
    assert cuts >= calls
    for session in sessions:
        await session.drop()
