"""A file that holds what one owner alone has put there, and its way."""

import os
import stat
from pathlib import Path

import pytest

from autobot_mcp_bridge.units.access.trusted import distrust, others_place, roots_own


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A directory that counts as the root of all: what is above it is as root has made it."""
    found = tmp_path / "root"
    (found / "deep").mkdir(parents=True)
    for place in (found, found / "deep"):
        place.chmod(0o755)
    monkeypatch.setattr("autobot_mcp_bridge.units.access.trusted.ROOT", found)
    return found


@pytest.fixture
def file(root):
    path = root / "deep" / "secret"
    path.write_bytes(b"word")
    path.chmod(0o600)
    return path


def judged(path):
    return distrust(path, owner=os.getuid())


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640])
def test_a_file_of_its_owner_alone_is_trusted(file, mode):
    file.chmod(mode)

    assert judged(file) == ""


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o620, 0o666])
def test_a_file_that_others_read_or_write_is_refused_with_the_command_that_helps(file, mode):
    file.chmod(mode)

    assert f"(mode {mode:04o}); run: chmod g-w,o-rw {file}" in judged(file)


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775])
def test_a_directory_on_the_way_that_others_write_is_refused(file, mode):
    file.parent.chmod(mode)

    assert judged(file).startswith(f"{file.parent}: others may write it")


def test_another_owner_is_refused(file):
    assert distrust(file, owner=os.getuid() + 1).endswith(f"run: chown root {file.parents[1]}")


def test_the_way_of_a_link_s_target_is_judged_too(file, root):
    other = root / "open"
    other.mkdir()
    link, target = root / "link", other / "target"
    link.symlink_to("open/target")
    target.write_bytes(b"word")
    target.chmod(0o600)
    other.chmod(0o755)
    assert judged(link) == ""
    other.chmod(0o777)
    assert judged(link).startswith(f"{other}: others may write it")

    link.unlink()
    link.symlink_to(file)
    assert judged(link) == ""
    file.chmod(stat.S_IRUSR | stat.S_IROTH)
    assert judged(link).startswith(f"{file}: others may read or write it")


def test_links_that_lead_in_circles_are_refused(root):
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")

    assert "Too many levels of symbolic links" in judged(root / "a")


@pytest.mark.parametrize("make", [lambda path: path.mkdir(0o700), os.mkfifo])
def test_what_is_no_regular_file_is_refused(root, make):
    path = root / "odd"
    make(path)

    assert judged(path) == f"{path}: allowed is a regular file"


def test_what_is_not_there_is_told(root):
    assert judged(root / "gone" / "file") == f"{root / 'gone'}: No such file or directory"


def test_what_a_link_leads_to_is_root_s_by_its_own_path(tmp_path):
    link = tmp_path / "python3"
    link.symlink_to("/usr/bin/python3")

    assert roots_own(link) == Path("/usr/bin/python3").resolve()


@pytest.mark.parametrize(("mode", "trusted"), [(0o755, True), (0o1777, True), (0o777, False)])
def test_who_may_write_a_directory_decides_what_lies_in_it(mode, trusted, tmp_path, as_root):
    file = tmp_path / "folder" / "file"
    file.parent.mkdir()
    file.touch(0o644)
    file.parent.chmod(mode)

    assert others_place(file) == ("" if trusted else str(file.parent))
    assert (roots_own(file) is not None) is trusted


@pytest.fixture
def as_root(monkeypatch):
    """What belongs to this user counts as root's."""
    before, own = Path.stat, os.getuid()

    def stat_of(path, **keys):
        found = before(path, **keys)
        uid = 0 if found.st_uid == own else found.st_uid
        return os.stat_result((*found[:4], uid, *found[5:]))

    monkeypatch.setattr(Path, "stat", stat_of)
