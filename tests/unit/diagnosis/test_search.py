"""The search, with a server whose needs are known; tests/sandbox/test_doctor.py has real ones."""

import pytest

from autobot_mcp_bridge.diagnosis.original import Original
from autobot_mcp_bridge.diagnosis.outcome import Outcome, Stage
from autobot_mcp_bridge.diagnosis.search import MOST_TRIES, Search
from autobot_mcp_bridge.model.death import Death, DeathCause
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.manager import UnitFacts

READY = Outcome(Stage.READY, seconds=0.1, tools=2)


def failed(*words, status=1):
    death = Death(DeathCause.EXIT, status, last_words=words)
    return Outcome(Stage.INITIALIZE, death.describe(), death, words=words)


class Needy:
    """Starts once every one of `needs` stands in the lines of a try; counts the tries."""

    def __init__(self, needs, outcome):
        self.era = None
        self.tries = []
        self._needs = needs
        self._outcome = outcome

    async def attempt(self, lines, within, longer=0.0):
        self.tries.append(lines)
        return READY if {*self._needs} <= {*lines} else self._outcome


def search(bench, *, deadline=60.0, relax=True, said=None, **keys):
    keys = {"name": "files", "command": ["/usr/bin/true"], **keys}
    spec = ServerSpec.model_validate(keys)
    facts = UnitFacts(load="loaded", active="inactive")
    original = Original(spec, ("/usr/bin/true",), facts, ("[Service]\nNoExecPaths=/ /tmp\n",), {})
    told = said if said is not None else []
    return Search(bench, original, deadline, told.append, relax=relax)


async def test_a_server_that_starts_is_healthy_after_one_try():
    bench = Needy([], READY)
    verdict = await search(bench).diagnose()

    assert (verdict.code, len(bench.tries)) == ("", 1)
    assert "lists 2 tools" in verdict.why


async def test_what_the_last_words_speak_for_is_tried_first():
    bench = Needy(["MemoryDenyWriteExecute=no"], failed("mmap: cannot get executable memory"))
    verdict = await search(bench).diagnose()

    assert (verdict.code, verdict.lines) == ("code_at_run_time", ("MemoryDenyWriteExecute=no",))
    assert len(bench.tries) == 3


async def test_what_nothing_speaks_for_is_found_nevertheless():
    bench = Needy(["PrivateUsers=no"], failed("it does not work"))
    verdict = await search(bench).diagnose()

    assert (verdict.code, verdict.lines) == ("users_hidden", ("PrivateUsers=no",))
    assert len(bench.tries) < 10


async def test_a_server_that_fails_without_its_sandbox_too_is_to_blame_itself():
    bench = Needy(["nothing that there is"], failed("KeyError: 'URL'"))
    verdict = await search(bench).diagnose()

    assert (verdict.code, len(bench.tries)) == ("server_fault", 2)
    assert "KeyError: 'URL'" in verdict.why


class Twice(Needy):
    """Fails in its sandbox with one outcome, and with the other without."""

    async def attempt(self, lines, within, longer=0.0):
        self.tries.append(lines)
        return self._outcome[bool(lines)]


async def test_one_that_fails_otherwise_without_its_sandbox_is_told_with_both_failures():
    bench = Twice([], (failed("cannot open /x"), failed("KeyError: 'URL'")))
    verdict = await search(bench).diagnose()

    assert verdict.code == "server_fault"
    assert verdict.why.index("KeyError: 'URL'") < verdict.why.index("cannot open /x")


async def test_two_failures_that_differ_in_their_time_are_one():
    bench = Twice([], (failed("12:00:01 [7f3a] no URL"), failed("12:00:02 [7f3b] no URL")))
    verdict = await search(bench).diagnose()

    assert verdict.why.count("no URL") == 1


async def test_one_that_asks_for_a_network_that_the_host_has_not_is_not_called_to_blame():
    words = "socket.gaierror: Temporary failure in name resolution"
    verdict = await search(Needy(["nothing that there is"], failed(words))).diagnose()

    assert verdict.code == "server_fault"
    assert "own fault" not in verdict.why
    assert "network.mode is none" in verdict.advice


class Networked(Needy):
    """Starts where an address is not denied; with `narrow` where those of the mode are allowed."""

    async def attempt(self, lines, within, longer=0.0):
        self.tries.append(lines)
        open_ = "IPAddressDeny=" in lines
        mode = any(line.startswith("IPAddressAllow=") and len(line) > 15 for line in lines)
        return READY if open_ or (mode and self._needs) else self._outcome


@pytest.mark.parametrize(
    ("narrow", "key"), [(True, {"network": {"mode": "internet"}}), (False, {})]
)
async def test_a_network_mode_is_proposed_only_if_it_has_been_tried(narrow, key):
    bench = Networked(narrow, failed("gaierror: Temporary failure in name resolution"))
    verdict = await search(bench).diagnose()

    assert (verdict.code, verdict.key) == ("network_needed", key)
    assert ("IPAddressDeny=" in verdict.lines) is not narrow
    assert ("network.mode list" in verdict.why) is not narrow


@pytest.mark.parametrize(
    "words",
    [
        "<urlopen error Tunnel connection failed: 403 not_listed>",
        "curl: (56) CONNECT tunnel failed, response 403",
        "RequestAbortedError: Proxy response (403) !== 200 when HTTP Tunneling",
    ],
)
async def test_what_the_egress_proxy_refuses_is_no_fault_of_the_server(words):
    network = {"mode": "names", "allow": ["api.example.com"]}
    bench = Needy(["nothing that there is"], failed(words))
    verdict = await search(bench, network=network).diagnose()

    assert verdict.code == "network_needed"
    assert "journalctl -t mcp-bridge-egress MCP_INSTANCE=files" in verdict.advice
    assert "network.allow" in verdict.advice


async def test_without_leave_to_relax_there_is_one_try():
    bench = Needy(["MemoryDenyWriteExecute=no"], failed("mmap"))
    verdict = await search(bench, relax=False).diagnose()

    assert (verdict.code, bench.tries) == ("undecided", [()])


async def test_memory_is_doubled_until_it_does():
    death = Death(DeathCause.MEMORY)
    bench = Needy([f"MemoryMax={256 << 20}"], Outcome(Stage.START, death.describe(), death))
    verdict = await search(bench, limits={"memory": "64M"}).diagnose()

    assert (verdict.code, verdict.key) == ("memory_limit", {"limits": {"memory": "256M"}})
    assert bench.tries[1:] == [
        (f"MemoryMax={128 << 20}",),
        (f"MemoryMax={256 << 20}",),
    ]


async def test_a_set_up_that_cannot_fork_lacks_tasks():
    said = "step USER, Failed to set up user namespacing: Resource temporarily unavailable"
    told = []
    bench = Needy(["TasksMax=4"], Outcome(Stage.SETUP, said))
    verdict = await search(bench, limits={"tasks": 1}, said=told).diagnose()

    assert (verdict.code, verdict.key) == ("tasks_limit", {"limits": {"tasks": 4}})
    assert told[1:] == [
        'try 2: with "limits": {"tasks": 2}',
        'try 3: with "limits": {"tasks": 4}',
    ]


async def test_a_late_answer_is_a_slow_start():
    late = Outcome(Stage.READY, seconds=4.2)
    verdict = await search(Needy(["never"], late), timeouts={"start": "2s"}).diagnose()

    assert (verdict.code, verdict.key) == ("slow_start", {"timeouts": {"start": "9s"}})


class Late(Needy):
    """Reads the question at once, and answers after `seconds`, with its stdin closed or not."""

    async def attempt(self, lines, within, longer=0.0):
        self.tries.append(lines)
        if within > 3.0:
            return Outcome(Stage.READY, seconds=3.0)
        return Outcome(Stage.INITIALIZE, "no answer", flushed=within > 1.0)


@pytest.mark.parametrize("start", ["1s", "2s"])
async def test_a_slow_server_is_none_that_buffers(start):
    verdict = await search(Late([], None), timeouts={"start": start}).diagnose()

    assert (verdict.code, verdict.key) == ("slow_start", {"timeouts": {"start": "6s"}})


async def test_when_the_time_is_over_it_says_so():
    verdict = await search(Needy([], READY), deadline=0.0).diagnose()

    assert verdict.code == "undecided"
    assert "--deadline" in verdict.mend


async def test_each_try_is_told_before_it_is_made():
    said = []
    await search(Needy(["PrivateUsers=no"], failed("no")), said=said).diagnose()

    assert said[:2] == ["try 1: as it is", "try 2: without its sandbox"]
    assert len(said) < MOST_TRIES


@pytest.mark.parametrize("needs", [["PrivateUsers=no", "RestrictNamespaces=no"]])
async def test_several_needs_are_found_together(needs):
    verdict = await search(Needy(needs, failed("no"))).diagnose()

    assert verdict.code == "sandbox"
    assert {*verdict.lines} == {*needs}
