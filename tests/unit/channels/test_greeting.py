"""Which era a server speaks is learnt from its first process, and none of the ways is a crash (G1)."""

import asyncio

import pytest

from autobot_mcp_bridge.channels import greeting
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.versions import Era
from support.scripted import EXITS, Kept, spec_of
from support.waiting import eventually

ASKED, INITIALIZED = "server/discover", ["initialize", "notifications/initialized"]
MODERN = {"result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}}
HANDSHAKE = {"result": {"protocolVersion": "2025-11-25", "capabilities": {}}}


def error(code, **more):
    return {"error": {"code": code, "message": "no", **more}}


UNSUPPORTED = error(-32022, data={"supported": ["2026-07-28"]})


def server(*, discover=None, initialize=HANDSHAKE):
    """One that answers these two questions only."""
    said = {"server/discover": discover, "initialize": initialize}
    return lambda method, _message: said.get(method)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Silence is told from an answer after a moment."""
    monkeypatch.setattr(greeting, "PROBE_PATIENCE", 0.05)


async def learnt(kept):
    await kept.instance.ready()
    assert kept.crashes == []
    return kept.instance.era


@pytest.mark.requirement("G1")
@pytest.mark.parametrize(
    "discover",
    [
        error(-32601),
        error(-32602),
        error(-32600),
        error(-32603),
        error([]),
        error({"code": -32020}),
        error(-32022, data={"supported": [[], {}, "2025-11-25"]}),
        error(-32022, data={"supported": ["2025-11-25"], "requested": "2026-07-28"}),
        {"result": {}},
        {"result": {"supportedVersions": "all"}},
        b"What is a server/discover?",
    ],
    ids=str,
)
async def test_whatever_is_no_modern_answer_means_the_handshake_on_the_same_process(discover):
    async with Kept(server(discover=discover)) as kept:
        assert await learnt(kept) is Era.HANDSHAKE
        assert kept.runtime.heard == [[ASKED, *INITIALIZED]]


@pytest.mark.requirement("G1", "G2")
async def test_a_modern_answer_is_all_that_a_modern_process_hears():
    async with Kept(server(discover=MODERN)) as kept:
        assert await learnt(kept) is Era.MODERN
        assert kept.runtime.heard == [[ASKED]]


@pytest.mark.parametrize(
    ("discover", "initialize", "era"),
    [
        ({"result": MODERN["result"] | {"protocolVersion": 5}}, HANDSHAKE, Era.MODERN),
        (error(-32601), {"result": HANDSHAKE["result"] | {"supportedVersions": 5}}, Era.HANDSHAKE),
    ],
)
async def test_the_first_words_hold_nothing_of_the_other_era(discover, initialize, era):
    async with Kept(server(discover=discover, initialize=initialize)) as kept:
        assert await learnt(kept) is era
        known = kept.instance.hello
        assert ("protocolVersion" in known, "supportedVersions" in known) == (
            era is Era.HANDSHAKE,
            era is Era.MODERN,
        )


@pytest.mark.requirement("G1")
async def test_silence_is_followed_by_initialize_on_the_same_process():
    async with Kept(server(discover=None)) as kept:
        assert await learnt(kept) is Era.HANDSHAKE
        assert kept.runtime.heard == [[ASKED, *INITIALIZED]]


@pytest.mark.requirement("G1", "G2")
async def test_a_late_modern_answer_is_heard_and_a_fresh_process_is_spoken_to():
    late = server(discover=None, initialize=None)
    async with Kept(late, server(discover=MODERN)) as kept:
        ready = asyncio.create_task(kept.instance.ready())
        await eventually(lambda: kept.runtime.heard[:1] == [[ASKED, "initialize"]])
        kept.runtime.processes[0].say(MODERN, 1)
        await ready
        assert (kept.instance.era, kept.crashes) == (Era.MODERN, [])
        assert kept.runtime.heard == [[ASKED, "initialize"], [ASKED]]


async def test_a_late_refusal_of_the_question_ends_no_initialize_that_is_under_way():
    async with Kept(server(discover=None, initialize=None)) as kept:
        ready = asyncio.create_task(kept.instance.ready())
        await eventually(lambda: kept.runtime.heard[:1] == [[ASKED, "initialize"]])
        kept.runtime.processes[0].say(error(-32601), 1)
        kept.runtime.processes[0].say(HANDSHAKE, 2)
        await ready
        assert (kept.instance.era, len(kept.runtime.processes)) == (Era.HANDSHAKE, 1)


@pytest.mark.requirement("G1")
async def test_a_process_that_ends_at_the_question_is_replaced_by_one_that_is_not_asked():
    exits = server(discover=EXITS)
    async with Kept(exits) as kept:
        assert await learnt(kept) is Era.HANDSHAKE
        assert kept.runtime.heard == [[ASKED], INITIALIZED]


@pytest.mark.requirement("G1", "G2")
async def test_a_process_that_then_refuses_initialize_is_replaced_by_one_that_is_not_asked():
    bound = server(discover=error(-32601), initialize=error(-32600))
    async with Kept(bound, server()) as kept:
        assert await learnt(kept) is Era.HANDSHAKE
        assert kept.runtime.heard == [[ASKED, "initialize"], INITIALIZED]


async def test_a_discover_result_without_the_modern_version_leads_to_a_fresh_handshake():
    older = {"result": {"supportedVersions": ["2025-11-25"], "capabilities": {}}}
    async with Kept(server(discover=older)) as kept:
        assert await learnt(kept) is Era.HANDSHAKE
        assert kept.runtime.heard == [[ASKED], INITIALIZED]


@pytest.mark.requirement("G1")
async def test_the_second_process_of_a_server_is_asked_nothing():
    async with Kept(server(discover=error(-32601))) as kept:
        await kept.instance.ready()
        await kept.again()
        assert kept.runtime.heard == [[ASKED, *INITIALIZED], INITIALIZED]


@pytest.mark.requirement("G1")
@pytest.mark.parametrize(
    ("first", "second", "era"),
    [
        (server(discover=MODERN), server(discover=error(-32601)), Era.HANDSHAKE),
        (server(discover=error(-32601)), server(initialize=UNSUPPORTED), Era.MODERN),
    ],
    ids=["modern", "handshake"],
)
async def test_an_era_that_no_longer_holds_is_learnt_anew_without_a_crash(first, second, era):
    last = server(discover=MODERN) if era is Era.MODERN else server()
    async with Kept(first, second, last) as kept:
        await kept.instance.ready()
        await kept.again()
        assert (kept.instance.era, kept.crashes) == (era, [])
        assert len(kept.runtime.processes) == 3


async def test_a_server_that_refuses_the_remembered_greeting_is_asked_at_its_next_start():
    refuses = server(initialize=error(-32601))
    async with Kept(server(discover=error(-32601)), refuses, server(discover=MODERN)) as kept:
        await kept.instance.ready()
        with pytest.raises(CallError) as refused:
            await kept.again()
        assert refused.value.cause is Cause.START_FAILED
        assert len(kept.crashes) == 1
        await kept.instance.ready()
        assert kept.instance.era is Era.MODERN


async def test_a_server_that_the_question_has_silenced_is_not_asked_at_its_next_start():
    silenced = server(discover=None, initialize=None)
    async with Kept(silenced, server(), timeouts={"start": "200ms"}) as kept:
        with pytest.raises(CallError):
            await kept.instance.ready()
        assert (await kept.instance.ready()).usable
        assert kept.runtime.heard == [[ASKED, "initialize"], INITIALIZED]


@pytest.mark.requirement("G1")
async def test_a_changed_command_is_asked_anew_and_another_setting_is_not():
    async with Kept(server(discover=error(-32601)), server(discover=MODERN)) as kept:
        await kept.instance.ready()
        kept.instance.configure(spec_of(tools={"deny": ["x"]}))
        assert kept.instance.era is Era.HANDSHAKE
        kept.instance.configure(spec_of(command=["/bin/false"]))
        await eventually(lambda: kept.instance.era is Era.MODERN)
        assert [heard[0] for heard in kept.runtime.heard] == [ASKED, ASKED]


async def test_a_process_of_the_command_before_tells_nothing_of_the_next():
    slow = server(discover=MODERN, initialize=None)
    async with Kept(server(discover=None, initialize=None), slow) as kept:
        ready = asyncio.create_task(kept.instance.ready())
        await eventually(lambda: kept.runtime.heard[:1] == [[ASKED, "initialize"]])
        kept.instance.configure(spec_of(command=["/bin/false"]))
        kept.runtime.processes[0].say(HANDSHAKE, 2)
        await ready
        await eventually(lambda: kept.instance.era is Era.MODERN)


async def test_a_server_that_refuses_both_eras_has_crashed_once():
    neither = server(discover=error(-32601), initialize=UNSUPPORTED)
    async with Kept(neither) as kept:
        with pytest.raises(CallError):
            await kept.instance.ready()
        assert len(kept.crashes) == 1
        assert len(kept.runtime.processes) <= 3


@pytest.mark.parametrize(
    "hello",
    [
        {"result": {"protocolVersion": "1999-01-01", "capabilities": {}}},
        {"result": {"protocolVersion": ["2025-11-25"], "capabilities": {}}},
        {"result": {"protocolVersion": "2025-11-25", "capabilities": []}},
    ],
    ids=str,
)
async def test_an_initialize_result_of_no_use_is_a_failed_start_that_says_why(hello):
    async with Kept(server(discover=error(-32601), initialize=hello)) as kept:
        with pytest.raises(CallError) as failed:
            await kept.instance.ready()
        assert failed.value.cause is Cause.START_FAILED


async def test_the_era_is_part_of_what_the_next_proxy_is_told():
    async with Kept(server(discover=MODERN)) as kept:
        await kept.instance.ready()
        memo = kept.instance.memo()
    async with Kept(server(discover=MODERN)) as later:
        later.instance.recall(memo)
        assert later.instance.era is Era.MODERN
        later.instance.recall([False, memo[1]])  # of a proxy that knew of no eras
        assert later.instance.era is None


async def test_a_start_that_the_breaker_tries_and_nobody_uses_can_be_tried_again():
    crash = server(discover=EXITS, initialize=EXITS)
    rules = {"crashes": 1, "window": "100ms"}
    async with Kept(crash, crash, crash, server(), breaker=rules) as kept:
        for _ in range(2):
            with pytest.raises(CallError):
                await kept.instance.ready()
        with pytest.raises(CallError) as refused:
            await kept.instance.ready()
        assert refused.value.cause is Cause.BREAKER_OPEN
        await eventually(lambda: kept.instance.breaker.retry_after(kept.now()) == 0)
        await kept.instance.ready()
        await kept.again()
