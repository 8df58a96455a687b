"""Lines out of bytes, however they arrive (BUGS B1, B4, B9)."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.channels.framing import LineSplitter, Oversized


@pytest.mark.requirement("H1")
@given(
    lines=st.lists(st.binary(max_size=40).filter(lambda b: b"\n" not in b and b"\r" not in b)),
    cuts=st.lists(st.integers(0, 400)),
)
def test_lines_come_out_whole_wherever_the_chunks_are_cut(lines, cuts):
    stream = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter(1000)
    found = []
    places = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})

    for start, end in itertools.pairwise(places):
        found += splitter.feed(stream[start:end])

    assert found == [line for line in lines if line.strip()]


@given(chunk=st.integers(1, 700))
def test_a_line_above_the_cap_is_dropped_and_its_ends_are_kept(chunk):
    stream = b"HEAD" + b"x" * 3000 + b"TAIL\nnext\n"
    splitter = LineSplitter(1000)
    found = []

    for start in range(0, len(stream), chunk):
        found += splitter.feed(stream[start : start + chunk])

    big, after = found
    assert isinstance(big, Oversized)
    assert big.size == 3008
    assert big.head.startswith(b"HEAD")
    assert big.tail.endswith(b"TAIL")
    assert after == b"next"


def test_what_is_kept_of_an_endless_line_is_bounded():
    splitter = LineSplitter(1000)

    for _ in range(1000):
        assert splitter.feed(b"y" * 1000) == []

    kept = sum(len(part) for part in splitter._parts) + len(splitter._head) + len(splitter._tail)
    assert kept <= 1024


def test_a_line_of_exactly_the_cap_passes():
    assert LineSplitter(10).feed(b"0123456789\n") == [b"0123456789"]


def test_carriage_returns_become_spaces():
    assert LineSplitter(100).feed(b'{"a":\r1}\r\n\r\n') == [b'{"a": 1} ']
