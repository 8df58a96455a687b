"""What is held of a program that runs in a unit of its own."""

import sys
import tracemalloc

import pytest

from autobot_mcp_bridge.units import transient

ENDLESS = "import os; part = b'x' * (1 << 20)\nfor _ in range(20):\n os.write({}, part)"
WITHIN = 60.0
MOST = 1 << 20


@pytest.mark.parametrize("descriptor", [1, 2])
def test_of_what_a_stranger_s_program_says_a_bounded_part_is_held(descriptor):
    tracemalloc.start()
    words = [sys.executable, "-c", ENDLESS.format(descriptor)]
    done = transient.bounded(words, WITHIN, MOST)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert done.status == 0
    assert (len(done.answer), len(done.said)) == ((MOST, 0) if descriptor == 1 else (0, 1000))
    assert peak < 4 << 20


def test_a_program_is_given_its_stdin_and_its_last_words_are_told():
    program = "import sys; print(sys.stdin.read()[::-1]); sys.exit('first\\nlast')"
    done = transient.bounded([sys.executable, "-c", program], WITHIN, MOST, b"abc")

    assert (done.status, done.answer, done.said) == (1, b"cba\n", "first\nlast")
