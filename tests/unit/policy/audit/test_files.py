"""The end of the chain is found again after any end of its writer."""

import os

import pytest

from autobot_mcp_bridge.policy.audit import tail as module
from autobot_mcp_bridge.policy.audit.chain import GENESIS, Chain, Link
from autobot_mcp_bridge.policy.audit.files import AuditFile, files
from autobot_mcp_bridge.policy.audit.open_calls import OpenCalls
from autobot_mcp_bridge.policy.audit.reading import following, lines
from autobot_mcp_bridge.policy.audit.verify import verify


def opened(directory, max_bytes=1 << 20, backups=3):
    file = AuditFile(directory, max_bytes, backups)
    file.open()
    return file


def put(file, *texts):
    sealed = [file.chain.seal({"text": text}) for text in texts]
    done = file.write(sealed)
    assert done == len(texts), file.failure
    return sealed


def test_a_line_names_the_one_before_and_itself():
    chain = Chain()
    first, second = chain.seal({"a": 1}), chain.seal({"a": 2})
    one, two = Link.read(first[:-1]), Link.read(second[:-1])

    assert (one.seq, one.prev, one.intact) == (1, GENESIS, True)
    assert (two.seq, two.prev, two.intact) == (2, one.digest, True)


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"{}", b"nonsense", b'{"seq":1,"hash":"0"}'),
        b'{"seq":"1","prev":"","hash":"' + b"0" * 64 + b'"}',
        b'[1,"hash":"' + b"0" * 64 + b'"}',
    ],
)
def test_what_was_never_a_line_is_none(line):
    assert Link.read(line) is None


def test_it_goes_on_after_the_last_line(tmp_path):
    first = opened(tmp_path / "a")
    put(first, "one", "two")
    first.close()
    second = opened(tmp_path / "a")
    assert second.chain.seq == 2
    put(second, "three")

    assert verify(files(tmp_path / "a")).clean


def test_it_goes_on_after_the_last_file_when_the_next_was_not_begun(tmp_path):
    """As a SIGKILL between the two leaves it."""
    first = opened(tmp_path / "a")
    put(first, "one", "two")
    first.close()
    (tmp_path / "a" / "audit.jsonl").rename(tmp_path / "a" / "audit.jsonl.1")
    second = opened(tmp_path / "a")
    put(second, "three")

    assert verify(files(tmp_path / "a")).clean
    assert second.chain.seq == 3


@pytest.mark.parametrize("size", [1, 100, 5000])
def test_the_beginning_of_a_line_is_put_aside(tmp_path, monkeypatch, size):
    monkeypatch.setattr(module, "LONGEST_LINE", 2000)  # it may be longer than one look back
    first = opened(tmp_path / "a")
    put(first, "one")
    first.close()
    with (tmp_path / "a" / "audit.jsonl").open("ab") as file:
        file.write(b"{" * size)
    second = opened(tmp_path / "a")

    assert second.torn.size == size
    kept = tmp_path / "a" / second.torn.kept
    assert kept.stat().st_size == min(size, 2000)
    assert kept.stat().st_mode & 0o777 == 0o600
    put(second, "two")
    assert verify(files(tmp_path / "a")).clean


def test_a_batch_is_divided_between_files_at_lines(tmp_path):
    file = opened(tmp_path / "a", max_bytes=1000, backups=50)
    put(file, *("x" * 100 for _ in range(40)))

    assert len(files(tmp_path / "a")) > 10
    assert all(path.stat().st_size <= 1000 for path in files(tmp_path / "a"))
    assert verify(files(tmp_path / "a")).clean


def test_a_line_that_is_larger_than_a_file_has_one_of_its_own(tmp_path):
    file = opened(tmp_path / "a", max_bytes=500, backups=50)
    put(file, "a", "x" * 3000, "b")

    assert verify(files(tmp_path / "a")).clean
    assert len(files(tmp_path / "a")) == 3


def test_a_part_of_a_batch_that_was_written_is_not_written_again(tmp_path, monkeypatch):
    file = opened(tmp_path / "a", max_bytes=1000, backups=50)
    sealed = [file.chain.seal({"text": "x" * 100}) for _ in range(20)]
    real, left = os.write, [2]

    def write(fd, data):
        left[0] -= 1
        if left[0] < 0:
            return real(fd, data[: len(data) // 2])  # a full disk takes a part
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    done = file.write(sealed)
    assert 0 < done < 20
    assert "No space left" in str(file.failure)
    monkeypatch.setattr(os, "write", real)
    assert file.write(sealed[done:]) == 20 - done

    assert verify(files(tmp_path / "a")).clean


def test_a_link_in_its_place_is_not_followed(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "audit.jsonl").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OSError, match="symbolic links"):
        opened(tmp_path / "a")
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_is_followed_into_the_next(tmp_path):
    file = opened(tmp_path / "a", max_bytes=400, backups=50)
    put(file, "before")
    reader = following(tmp_path / "a")
    assert next(reader) is None
    sealed = []
    for text in "abcdefgh":
        sealed += put(file, text * 50)
        assert next(reader) == sealed[-1][:-1]
        assert next(reader) is None


def test_lines_are_read_with_their_places(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"one\ntwo\nthr")

    assert [(line.number, line.data, line.whole) for line in lines(path)] == [
        (1, b"one", True),
        (2, b"two", True),
        (3, b"thr", False),
    ]


# ---- the calls that a SIGKILL takes ----


def test_the_next_process_knows_how_many_were_open(tmp_path):
    first = OpenCalls(tmp_path / "p" / "open")
    first.record(0, 10)
    for _ in range(5):
        first.begin()
    first.record(2, 12)
    # Killed: nothing is closed. Its last line had come into the file and was not counted.
    second = OpenCalls(tmp_path / "p" / "open")

    assert second.unrecorded(12) == 3
    assert second.unrecorded(13) == 2
    assert OpenCalls(tmp_path / "p" / "open").unrecorded(13) == 0
    assert (tmp_path / "p" / "open").stat().st_mode & 0o777 == 0o600


def test_a_chain_that_was_made_anew_meanwhile_tells_nothing_of_it(tmp_path):
    first = OpenCalls(tmp_path / "open")
    first.record(0, 100)
    first.begin()

    assert OpenCalls(tmp_path / "open").unrecorded(5) == 0
