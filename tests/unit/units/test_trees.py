"""Directories that strangers fill are walked within bounds, and lead nowhere else."""

import os
from pathlib import Path

from autobot_mcp_bridge.units.disk.trees import entries_below


def descriptors():
    return len([*Path("/proc/self/fd").iterdir()])


def names(path, levels=9):
    return sorted(str(found.relative_to(path)) for found, _ in entries_below(path, levels))


def test_links_are_told_and_not_followed(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "folder").mkdir(parents=True)
    outside.mkdir()
    (outside / "file").touch()
    (inside / "link").symlink_to(outside)
    (inside / "folder" / "loop").symlink_to(inside)

    assert names(inside) == ["folder", "folder/loop", "link"]
    assert names(inside / "link") == []
    assert names(tmp_path / "none") == []


def test_a_directory_that_becomes_a_link_meanwhile_leads_nowhere(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    (inside / "folder").mkdir(parents=True)

    walk = entries_below(inside, 9)
    assert next(walk)[0].name == "folder"
    (inside / "folder").rename(inside / "before")
    (inside / "folder").symlink_to(outside)

    assert [path.name for path, _ in walk if path.name == "file"] == []


def test_no_tree_is_too_deep(tmp_path):
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(200):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)

    before = descriptors()
    assert len(names(tmp_path, 64)) == 64
    assert descriptors() == before
