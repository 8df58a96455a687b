"""Stored pipes as the next proxy finds them."""

import os
import re

import pytest

from autobot_mcp_bridge.runtimes.systemd import KeptPipes
from autobot_mcp_bridge.runtimes.systemd.handover import Handed
from autobot_mcp_bridge.supervision.journal import Held
from rules.tree import ROOT

INVOCATION = "0" * 32


class Store:
    def __init__(self):
        self.held = {}
        self.removed = []

    def store(self, name, *descriptors):
        self.held[name] = descriptors

    def remove(self, name):
        self.removed.append(name)


@pytest.fixture
def pipes():
    """A server's two pipes: the proxy's ends first."""
    (stdin, to_stdin), (from_stdout, stdout) = os.pipe(), os.pipe()
    made = [to_stdin, from_stdout, stdin, stdout]
    yield made
    for descriptor in made:
        try:
            os.close(descriptor)
        except OSError:
            continue


def found(stored, memory=None):
    """What a proxy finds, by default of a channel of "x" that was initialized."""
    if memory is None:
        memory = Held()
        handed = Handed(INVOCATION, 42, -1, -1)
        KeptPipes(Store(), memory).greeted("x", handed, {}, "view")
    kept = KeptPipes(Store(), memory)
    kept.find(stored)
    return kept


@pytest.mark.parametrize("turned", [False, True])
def test_which_end_is_which_is_told_by_the_way_it_was_opened(pipes, turned):
    both = pipes[1::-1] if turned else pipes[:2]
    left = found({INVOCATION: both}).take("x")
    assert (left.handed.stdin_fd, left.handed.stdout_fd) == (pipes[0], pipes[1])
    assert left.handed.invocation == INVOCATION


def test_what_is_known_of_a_channel_comes_with_it(pipes):
    memory = Held()
    kept = KeptPipes(Store(), memory)
    handed = Handed(INVOCATION, 42, *pipes[:2])
    kept.keep("x", handed, "view")
    kept.greeted("x", handed, {"capabilities": {}}, "view")
    kept.rest("x", handed, b'{"half\xff')
    kept.torn("x", INVOCATION, torn=True)
    left = found({INVOCATION: pipes[:2]}, memory).take("x")
    assert (left.handed.pid, left.hello, left.view) == (42, {"capabilities": {}}, "view")
    assert (left.rest, left.torn) == (b'{"half\xff', True)

    kept.release("x", INVOCATION)
    assert kept.store.removed == [INVOCATION]
    assert not list(memory.lines())


def test_a_channel_that_was_not_initialized_has_no_hello(pipes):
    memory = Held()
    KeptPipes(Store(), memory).keep("x", Handed(INVOCATION, 42, *pipes[:2]), "view")
    assert found({INVOCATION: pipes[:2]}, memory).take("x").hello is None


def test_one_that_cannot_be_gone_on_with_has_none_either(pipes):
    memory = Held()
    kept = KeptPipes(Store(), memory)
    handed = Handed(INVOCATION, 42, *pipes[:2])
    kept.greeted("x", handed, {}, "view")
    kept.rest("x", handed, None)
    assert found({INVOCATION: pipes[:2]}, memory).take("x").hello is None


def test_pipes_of_which_nothing_is_known_are_nobodys(pipes):
    kept = found({INVOCATION: pipes[:2]}, Held())
    assert kept.take("x") is None
    (handed,) = kept.others(["x"])
    assert handed.invocation == INVOCATION


def test_what_is_known_of_a_channel_without_pipes_is_forgotten(pipes):
    memory = Held()
    KeptPipes(Store(), memory).greeted("x", Handed("1" * 32, 42, *pipes[:2]), {}, "view")
    assert found({INVOCATION: pipes[:2]}, memory).take("x") is None
    assert not list(memory.lines())


@pytest.mark.parametrize("which", [[0], [1, 2], [0, 1, 2]])
def test_what_is_no_pair_is_closed_and_removed(pipes, which):
    ends = [os.dup(pipes[number]) for number in which]
    kept = found({INVOCATION: ends, "state-3": []})
    assert kept.take("x") is None
    assert kept.store.removed == [INVOCATION]
    assert kept.broken == [INVOCATION]
    for end in ends:
        with pytest.raises(OSError, match="Bad file"):
            os.fstat(end)


def test_the_end_of_a_server_is_seen_at_its_pipes(pipes):
    left = found({INVOCATION: pipes[:2]}).take("x")
    assert not left.ended
    os.close(pipes[2])
    assert left.ended


def test_others_are_those_that_nobody_serves_any_more(pipes):
    kept = found({INVOCATION: pipes[:2]})
    assert kept.others(["x"]) == []
    assert [handed.invocation for handed in kept.others(["y"])] == [INVOCATION]
    assert kept.take("x") is None


def test_the_names_of_all_that_is_stored_fit_into_one_variable():
    unit = (ROOT / "templates" / "mcp-bridge-proxy.service").read_text(encoding="utf-8")
    (most,) = re.findall(r"^FileDescriptorStoreMax=(\d+)$", unit, re.MULTILINE)
    sockets = 100  # names of some sockets, and of two files of state
    assert int(most) * len(f"{INVOCATION}:") + sockets < 128 * 1024
