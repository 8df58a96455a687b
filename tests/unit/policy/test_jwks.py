"""An issuer's keys over time: asked for seldom, kept while nobody gives others, never for ever."""

import asyncio
import logging

import pytest

from autobot_mcp_bridge.model.host import OAuth
from autobot_mcp_bridge.policy.discovery import IssuerError
from autobot_mcp_bridge.policy.jwks import MAX_KEYS, RETRY, Keys, KeysUnavailableError

FRESH, KEPT = 600.0, 86400.0


def rsa(kid, **more):
    return {"kty": "RSA", "kid": kid, "n": "AQAB", "e": "AQAB", **more}


class Source:
    """An issuer as its answers: a list of keys, or an error."""

    def __init__(self, *keys):
        self.answer = list(keys)
        self.asked = 0
        self.gate = None

    async def fetch(self):
        self.asked += 1
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def source():
    return Source(rsa("one"))


@pytest.fixture
def keys(source, clock):
    settings = OAuth(issuer="https://id.example", keys_fresh=FRESH, keys_kept=KEPT)
    return Keys(source, settings, clock)


async def settled(keys):
    """Let a request in the background end."""
    if keys._asking is not None:
        await keys._asking


async def test_a_known_key_is_asked_for_once(keys, source):
    for _ in range(5):
        found = await keys.find("RS256", "one")
        assert found is not None
        assert keys.knows(found.digest)
    assert source.asked == 1


async def test_an_unknown_key_is_looked_for_at_most_every_few_seconds(keys, source, clock):
    await keys.find("RS256", "one")
    for _ in range(100):
        assert await keys.find("RS256", "two") is None
    assert source.asked == 1
    source.answer.append(rsa("two"))
    clock.now += RETRY
    assert await keys.find("RS256", "two") is not None
    assert source.asked == 2


async def test_many_callers_wait_for_one_answer(keys, source):
    source.gate = asyncio.Event()
    callers = [asyncio.create_task(keys.find("RS256", "one")) for _ in range(20)]
    await asyncio.wait(callers, timeout=0.01)
    callers[0].cancel()
    await asyncio.wait(callers[:1])
    source.gate.set()
    assert all(await asyncio.gather(*callers[1:]))
    assert source.asked == 1


async def test_old_keys_are_renewed_without_anybody_waiting(keys, source, clock):
    first = await keys.find("RS256", "one")
    source.answer = [rsa("two")]
    clock.now += FRESH + 1
    assert await keys.find("RS256", "one") is first
    await settled(keys)
    assert not keys.knows(first.digest)
    assert await keys.find("RS256", "one") is None
    assert await keys.find("RS256", "two") is not None


async def test_while_the_issuer_is_down_the_last_keys_count_for_a_bounded_time(
    keys, source, clock, caplog
):
    caplog.set_level(logging.INFO)
    assert await keys.find("RS256", "one") is not None
    source.answer = IssuerError("no answer")
    for _ in range(10):
        clock.now += KEPT / 10
        assert await keys.find("RS256", "one") is not None
        await settled(keys)
    assert caplog.text.count("cannot be had") == 1
    clock.now += 1
    with pytest.raises(KeysUnavailableError):
        await keys.find("RS256", "one")
    source.answer = [rsa("one")]
    clock.now += RETRY
    assert await keys.find("RS256", "one") is not None
    assert caplog.text.count("can be had again") == 1


async def test_without_any_answer_there_is_nothing_to_judge_with(keys, source, clock):
    source.answer = IssuerError("no answer")
    for _ in range(20):
        with pytest.raises(KeysUnavailableError):
            await keys.find("RS256", "one")
    assert source.asked == 1
    assert not keys.usable
    assert keys.knows("any")  # nothing speaks against a token that counted before


@pytest.mark.parametrize(
    "answer",
    [[], ["x", None, 1], [{"kty": "oct", "k": "AAAA", "kid": "one"}], [rsa("one", use="enc")]],
)
async def test_a_set_without_a_usable_key_is_no_answer(keys, source, answer):
    source.answer = answer
    with pytest.raises(KeysUnavailableError):
        await keys.find("RS256", "one")


async def test_a_key_is_for_its_own_type_curve_and_algorithm(keys, source):
    curve = {"kty": "EC", "crv": "P-256", "kid": "ec", "x": "AA", "y": "AA"}
    source.answer = [rsa("one"), rsa("ps", alg="PS256"), curve]
    assert await keys.find("RS256", "one") is not None
    assert await keys.find("PS256", "ps") is not None
    assert await keys.find("ES256", "ec") is not None
    for algorithm, kid in (("RS256", "ps"), ("ES384", "ec"), ("RS256", "ec"), ("ES256", "one"), ("EdDSA", "ec")):  # fmt: skip
        assert await keys.find(algorithm, kid) is None, (algorithm, kid)


async def test_without_a_kid_only_a_single_key_is_meant(keys, source, clock):
    assert await keys.find("RS256", None) is not None
    source.answer = [rsa("one"), rsa("two")]
    clock.now += FRESH + 1
    await keys.find("RS256", "one")
    await settled(keys)
    assert await keys.find("RS256", None) is None


async def test_of_a_huge_set_a_bounded_number_of_keys_is_kept(keys, source):
    source.answer = [rsa(str(number)) for number in range(MAX_KEYS + 1)]
    assert await keys.find("RS256", str(MAX_KEYS - 1)) is not None
    assert await keys.find("RS256", str(MAX_KEYS)) is None


async def test_a_fault_of_the_source_is_logged_and_ends_nothing(keys, source, clock, caplog):
    source.answer = ZeroDivisionError()
    with pytest.raises(KeysUnavailableError):
        await keys.find("RS256", "one")
    assert "fault while asking" in caplog.text
    source.answer = [rsa("one")]
    clock.now += RETRY
    assert await keys.find("RS256", "one") is not None
