"""The store's directories, locks and memory."""

import os
import threading
import time

import pytest

from autobot_mcp_bridge.units.packages.job import InstallError, Job
from autobot_mcp_bridge.units.packages.specs import parse_command
from autobot_mcp_bridge.units.packages.store import (
    MARKER,
    Installed,
    Resolution,
    Store,
    package_of,
)

SPEC = parse_command(["npx", "@a/b@1.0.0"])


@pytest.fixture
def store(tmp_path):
    found = Store(tmp_path / "packages")
    found.prepare()
    return found


@pytest.fixture
def job(store):
    return Job(store.log_file("test"), {})


def installed(program="/bin/sh"):
    return Installed("1.0.0", "sha512-x", {"b": (program, "/etc/passwd")}, "b", ("/bin",))


def put(store, spec, version):
    directory = store.directory(spec, version)
    directory.mkdir(parents=True)
    store.complete(directory, installed())
    return directory


def test_a_package_has_a_directory_of_its_own_by_name_and_exact_version(store):
    directory = store.directory(SPEC, "1.0.0")

    assert directory == store.root / "npm/@a/b@1.0.0"


def test_only_a_marker_makes_an_install_complete(store):
    directory = store.directory(SPEC, "1.0.0")
    directory.mkdir(parents=True)
    assert store.find(SPEC) is None

    store.complete(directory, installed())

    assert store.find(SPEC) == installed()


def test_an_install_whose_program_is_gone_counts_as_none(store, tmp_path):
    program = tmp_path / "program"
    program.touch()
    directory = store.directory(SPEC, "1.0.0")
    directory.mkdir(parents=True)
    store.complete(directory, installed(str(program)))
    assert store.find(SPEC) is not None

    program.unlink()

    assert store.find(SPEC) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 9}', '{"format": 1, "x": 2}'])
def test_a_marker_that_cannot_be_believed_counts_as_none(store, text):
    directory = store.directory(SPEC, "1.0.0")
    directory.mkdir(parents=True)
    (directory / MARKER).write_text(text)

    assert store.find(SPEC) is None


def test_the_directories_are_public_whatever_the_umask(tmp_path):
    before = os.umask(0o077)
    try:
        store = Store(tmp_path / "a" / "packages")
        store.prepare()
    finally:
        os.umask(before)

    assert {
        p.stat().st_mode & 0o777 for p in (store.root.parent, store.root, store.root / "npm")
    } == {0o755}


def test_one_name_is_locked_by_one_at_a_time(store, job):
    held, other = threading.Event(), Job(store.log_file("other"), {})
    refused = []

    def wait_for_it():
        held.wait(5)
        try:
            with store.locked("x", other):
                refused.append("had it")
        except InstallError as error:
            refused.append(str(error))

    other.deadline = time.monotonic()
    thread = threading.Thread(target=wait_for_it)
    thread.start()
    with store.locked("x", job):
        held.set()
        thread.join(5)

    assert "another process has been installing x" in refused[0]
    with store.locked("x", other):
        pass


def test_a_resolution_is_remembered_beside_the_others(store, job):
    first, second = (parse_command(["npx", text]) for text in ("a@^1", "a@^2"))
    store.remember(first, "1.5.0", job)
    store.remember(second, "2.5.0", job)

    assert (store.resolved(first), store.resolved(second)) == ("1.5.0", "2.5.0")


def test_a_broken_memory_is_an_empty_one(store, job):
    spec = parse_command(["npx", "a@^1"])
    (store.root / "resolved.json").write_text("{")

    assert store.resolved(spec) is None
    store.remember(spec, "1.0.0", job)
    assert store.resolved(spec) == "1.0.0"


def test_a_resolution_of_before_there_were_upgrades_still_counts(store, job):
    spec = parse_command(["npx", "a@^1"])
    (store.root / "resolved.json").write_text('{"npm:a@^1": "1.0.0"}')
    assert store.resolution(spec) == Resolution("1.0.0")

    store.remember(spec, "1.1.0", job)

    assert store.resolution(spec) == Resolution("1.1.0", "1.0.0")


def test_rolling_back_exchanges_the_two_versions_as_often_as_asked(store, job):
    spec = parse_command(["npx", "a@^1"])
    for version in ("1.0.0", "1.1.0"):
        put(store, spec, version)
        store.remember(spec, version, job)

    assert store.roll_back(spec, job) == Resolution("1.0.0", "1.1.0")
    assert store.resolved(spec) == "1.0.0"
    assert store.roll_back(spec, job) == Resolution("1.1.0", "1.0.0")


def test_the_same_version_again_does_not_lose_the_one_before(store, job):
    spec = parse_command(["npx", "a@^1"])
    for version in ("1.0.0", "1.1.0", "1.1.0"):
        store.remember(spec, version, job)

    assert store.resolution(spec) == Resolution("1.1.0", "1.0.0")


def test_nothing_is_rolled_back_to_what_never_was_or_is_no_more(store, job):
    spec = parse_command(["npx", "a@^1"])
    store.remember(spec, "1.0.0", job)
    with pytest.raises(InstallError, match="a@\\^1 has not been upgraded"):
        store.roll_back(spec, job)

    store.remember(spec, "1.1.0", job)
    with pytest.raises(InstallError, match=r"version 1\.0\.0 is not installed any more"):
        store.roll_back(spec, job)
    assert store.resolved(spec) == "1.1.0"


def test_a_version_is_deleted_only_when_no_open_spec_means_it(store, job):
    first, second = (parse_command(["npx", text]) for text in ("a@^1", "a"))
    directory = put(store, first, "1.0.0")
    store.remember(first, "1.0.0", job)
    store.remember(second, "1.0.0", job)
    store.remember(first, "1.1.0", job)
    store.remember(first, "1.2.0", job)
    assert not store.forget(first, "1.0.0", job)
    assert directory.is_dir()

    store.remember(second, "1.1.0", job)
    store.remember(second, "1.2.0", job)

    assert store.forget(first, "1.0.0", job)
    assert not directory.exists()


@pytest.mark.parametrize(
    ("argv", "package"),
    [
        (("node", "/s/packages/npm/@a/b@1.2.3/node_modules/@a/b/x.js", "/srv"), "@a/b@1.2.3"),
        (("/s/packages/npm/b@1.2.3-rc.1/node_modules/.bin/b",), "b@1.2.3-rc.1"),
        (("/s/packages/pypi/mcp+cli@2.3.0/bin/python", "-m", "mcp"), "mcp+cli@2.3.0"),
        (("/usr/bin/python3", "server.py"), None),
        (("/usr/bin/cat", "/s/packages/npm/logs"), None),
        ((), None),
    ],
)
def test_a_command_tells_which_package_it_starts(argv, package):
    assert package_of(argv) == package
