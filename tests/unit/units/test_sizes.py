"""How much of a disk a directory takes, whoever has filled it."""

import os

from autobot_mcp_bridge.units.disk.sizes import MOST_LEVELS, Size, size_of


def fill(path, kib=64):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(kib << 10))


def test_files_below_count_with_what_they_take_and_hard_links_once(tmp_path):
    fill(tmp_path / "a")
    one = size_of(tmp_path)
    fill(tmp_path / "b" / "c")
    two = size_of(tmp_path)
    (tmp_path / "link").hardlink_to(tmp_path / "a")

    assert one.whole
    assert one.bytes >= 64 << 10
    assert 64 << 10 <= two.bytes - one.bytes < 96 << 10
    assert size_of(tmp_path).bytes - two.bytes < 64 << 10


def test_a_sparse_file_takes_what_is_written(tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)

    assert size_of(tmp_path).bytes < 1 << 20


def test_links_lead_nowhere(tmp_path):
    fill(tmp_path / "other" / "large")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "link").symlink_to(tmp_path / "other")
    (tmp_path / "top").symlink_to(tmp_path / "other")

    assert size_of(tmp_path / "own").bytes < 64 << 10
    assert size_of(tmp_path / "top") == size_of(tmp_path / "nowhere") == Size()


def test_the_walk_ends_at_its_bounds_and_says_so(tmp_path):
    for number in range(20):
        (tmp_path / str(number)).touch()
    assert size_of(tmp_path, most=20).whole
    assert not size_of(tmp_path, most=19).whole

    deep = tmp_path / "deep"
    (deep / "/".join("d" * (MOST_LEVELS + 1))).mkdir(parents=True)
    assert not size_of(deep).whole
