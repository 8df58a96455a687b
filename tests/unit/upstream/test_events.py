"""Server-sent events out of bytes that come in pieces of any size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.upstream.events import Events, TooLongError


def read(*pieces, most=1000):
    events = Events(most)
    found = [data for piece in pieces for data in events.feed(piece)]
    return found, events


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_each_way_to_end_a_line_counts(end):
    text = end.join((b"id: 7", b"data: one", b"data: two", b"", b""))

    found, events = read(text)

    assert found == [b"one\ntwo"]
    assert events.last_id == "7"


def test_a_comment_another_kind_and_an_event_without_data_are_no_message():
    found, events = read(b": ping\n\nevent: other\ndata: x\n\nid: 3\ndata:\n\nid: 4\n\n")

    assert found == []
    assert events.last_id == "4"


def test_the_servers_wish_for_the_next_try_is_kept_within_a_minute():
    assert read(b"retry: 2500\n\n")[1].retry == 2.5
    assert read(b"retry: 999999999\n\n")[1].retry == 60
    assert read(b"retry: soon\n\n")[1].retry is None


def test_the_id_of_an_event_that_has_not_ended_does_not_count():
    assert read(b"id: 1\ndata: a\n\nid: 2\ndata: b")[1].last_id == "1"


def test_an_event_beyond_its_bound_is_refused_in_whatever_pieces_it_comes():
    for pieces in (
        [b"data: " + b"x" * 2000],
        [b"data: ", *[b"x" * 100] * 20],
        [b"data: x\n"] * 2000,
    ):
        with pytest.raises(TooLongError):
            read(*pieces)


def test_what_has_been_read_counts_no_more():
    found, _ = read(*[b"data: " + b"x" * 900 + b"\n\n"] * 50)

    assert len(found) == 50


@given(
    st.lists(st.text(st.characters(blacklist_characters="\r\n\0"), min_size=1), max_size=5),
    st.integers(1, 9),
)
def test_pieces_of_any_size_make_the_same_messages(texts, size):
    data = b"".join(b"data:" + b" " + text.encode() + b"\r\n\r\n" for text in texts)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]

    assert read(*pieces, most=1 << 20)[0] == [text.encode() for text in texts]
