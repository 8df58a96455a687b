"""Root's copy of a stranger's directory: what it takes, and what it refuses."""

import os
import py_compile
import subprocess
import sys
from pathlib import PurePosixPath

import pytest

from autobot_mcp_bridge.units.fetch.copying import Copy
from autobot_mcp_bridge.units.packages.job import InstallError

FINAL = PurePosixPath("/var/lib/mcp-bridge/packages/npm/name@1.0.0")


@pytest.fixture
def source(tmp_path):
    made = tmp_path / "staging/id/npm/name@1.0.0"
    made.mkdir(parents=True)
    return made


@pytest.fixture
def target(tmp_path):
    made = tmp_path / "target"
    made.mkdir()
    return made


def copy(source, target, **bounds):
    skip = frozenset({".complete.json"})
    Copy(FINAL, bounds.pop("owner", os.getuid()), skip, **bounds).run(source, target)


def test_files_directories_and_links_within_are_copied_with_plain_modes(source, target):
    (source / "lib/deep").mkdir(parents=True)
    (source / "lib/deep/run.js").write_text("code")
    (source / "lib/deep/run.js").chmod(0o777)
    (source / "data").write_text("data")
    (source / "data").chmod(0o666)
    (source / ".complete.json").write_text("{}")
    (source / "lib/up").symlink_to("../data")
    (source / "lib/absolute").symlink_to(FINAL / "data")
    (source / "python").symlink_to("/usr/bin/python3.11")
    copy(source, target)

    assert (target / "lib/deep/run.js").read_text() == "code"
    assert (target / "lib/deep/run.js").stat().st_mode & 0o7777 == 0o755
    assert (target / "data").stat().st_mode & 0o7777 == 0o644
    assert str((target / "lib/up").readlink()) == "../data"
    assert not (target / ".complete.json").exists()
    assert (target / "data").stat().st_ino != (source / "data").stat().st_ino


def test_what_is_compiled_already_need_not_be_compiled_at_each_start(source, target):
    (source / "module.py").write_text("")
    os.utime(source / "module.py", (0, 1_000_000_000))
    py_compile.compile(str(source / "module.py"))
    copy(source, target)

    words = (sys.executable, "-v", "-B", "-c", "import module")
    env = {"PYTHONPATH": str(target)}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True, timeout=30)
    assert f"matches {target}/module.py" in done.stderr


@pytest.mark.parametrize(
    "leads",
    [
        "/etc/passwd",
        "../x",
        "sub/../../x",
        "sub/../x",
        f"{FINAL}/../other@1.0.0",
        "/usr/bin/python3/../sh",
        "/usr/bin/bash",
    ],
)
def test_a_link_that_could_lead_out_is_refused(source, target, leads):
    (source / "link").symlink_to(leads)
    with pytest.raises(InstallError, match="link: it leads out of the package"):
        copy(source, target)


def test_a_link_may_go_up_only_as_far_as_it_lies_deep(source, target):
    (source / "a/b").mkdir(parents=True)
    (source / "a/b/link").symlink_to("../../x")
    copy(source, target)

    (source / "a/b/far").symlink_to("../../../x")
    with pytest.raises(InstallError, match="a/b/far"):
        copy(source, target / "a")


@pytest.mark.parametrize("bit", [0o4755, 0o2755])
def test_a_file_that_changes_its_user_is_refused(source, target, bit):
    (source / "su").write_text("")
    (source / "su").chmod(bit)
    with pytest.raises(InstallError, match="su: it would change its user"):
        copy(source, target)


def test_a_pipe_is_refused_without_waiting_for_it(source, target):
    os.mkfifo(source / "pipe")
    with pytest.raises(InstallError, match="pipe: it is neither a file nor a directory"):
        copy(source, target)


@pytest.mark.root
def test_a_device_is_refused(source, target, need):
    need("root")
    os.mknod(source / "null", 0o600 | 0o020000, os.makedev(1, 3))
    with pytest.raises(InstallError, match="null: it is neither"):
        copy(source, target)


def test_what_belongs_to_another_user_is_refused(source, target):
    (source / "file").write_text("")
    with pytest.raises(InstallError, match="file: it belongs to another user"):
        copy(source, target, owner=os.getuid() + 1)


def test_sizes_and_numbers_are_bounded(source, target):
    (source / "a").write_bytes(b"x" * 1000)
    (source / "b").write_bytes(b"x" * 1000)
    copy(source, target, most_bytes=2000, most_files=2)

    with pytest.raises(InstallError, match="larger than"):
        copy(source, _fresh(target), most_bytes=1999)
    with pytest.raises(InstallError, match="more than 1 files"):
        copy(source, _fresh(target), most_files=1)


def test_a_directory_that_has_become_a_link_is_not_followed(source, target, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    source.rename(elsewhere)
    source.symlink_to(elsewhere)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        copy(source, target)


def _fresh(target):
    made = target.with_name(f"{target.name}-")
    while made.exists():
        made = made.with_name(f"{made.name}-")
    made.mkdir()
    return made
