"""Installs into the store, by the real npm, uv and pip, from a registry on 127.0.0.1."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from autobot_mcp_bridge.units.packages import pip, pypi
from autobot_mcp_bridge.units.packages.installer import install_package, package_command
from autobot_mcp_bridge.units.packages.job import InstallError, Job
from autobot_mcp_bridge.units.packages.specs import parse_command
from autobot_mcp_bridge.units.packages.store import LOCK, MARKER
from support.registry import serving
from support.waiting import PATIENCE, eventually

NPM, PYPI = "npx -y @made/tool@1.0.0 arg", "uvx made-tool@1.0.0 arg"
# A whole install by npm takes seconds even from a registry beside it.
INSTALL = 60.0 * PATIENCE
INSTALLER = """
import os, sys
from pathlib import Path
from autobot_mcp_bridge.units.packages.installer import install_package
from autobot_mcp_bridge.units.packages.job import Job
from autobot_mcp_bridge.units.packages.specs import parse_command
from autobot_mcp_bridge.units.packages.store import Store
store = Store(Path(sys.argv[1]))
store.prepare()
job = Job(Path(sys.argv[1], "logs", f"{os.getpid()}.log"), os.environ)
print(install_package(parse_command(sys.argv[2].split()), store, job).version)
"""


@pytest.fixture
def registry():
    with serving() as found:
        found.add_npm("@made/tool", ["1.0.0", "1.2.0", "2.0.0"], "console.log(process.argv[2])")
        found.add_pypi("made-lib", ["1.0.0", "1.2.0", "2.0.0"])
        found.add_pypi("made-tool", ["1.0.0", "1.2.0", "2.0.0"], "import sys; print(sys.argv[1])")
        yield found


def install(command, store, environ):
    spec = parse_command(command.split())
    return spec, install_package(spec, store, Job(store.log_file("test"), environ))


def output(command):
    done = subprocess.run(
        command.argv, env=dict(command.env), capture_output=True, text=True, check=True, timeout=30
    )
    return done.stdout.strip()


def processes(count, command, store, environ):
    words = [sys.executable, "-c", INSTALLER, str(store.root), command]
    env = {**environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return [
        subprocess.Popen(words, env=env, stdout=subprocess.PIPE, start_new_session=True, text=True)
        for _ in range(count)
    ]


def results(started):
    try:
        return [process.communicate(timeout=INSTALL)[0].strip() for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.mark.parametrize("command", [NPM, PYPI])
def test_an_installed_program_runs_with_its_arguments_and_nothing_but_the_store(
    command, store, environ
):
    spec, installed = install(command, store, environ)

    assert output(package_command(spec, installed)) == "arg"
    assert installed.integrity


@pytest.mark.parametrize("command", [NPM, PYPI])
def test_what_is_installed_is_not_asked_for_again(command, store, environ, registry):
    install(command, store, environ)
    registry.hits.clear()

    spec, installed = install(command, store, environ)

    assert installed == store.find(spec)
    assert registry.hits == []


@pytest.mark.parametrize(
    ("command", "version"),
    [
        ("npx @made/tool@^1", "1.2.0"),
        ("npx @made/tool", "2.0.0"),
        ("uvx --from made-tool<2 made-tool", "1.2.0"),
        ("uvx made-tool", "2.0.0"),
    ],
)
def test_a_range_is_resolved_once_and_then_kept(command, version, store, environ, registry):
    _, installed = install(command, store, environ)
    registry.add_npm("@made/tool", ["1.0.0", "1.9.0", "3.0.0"])
    registry.add_pypi("made-tool", ["1.0.0", "1.9.0", "3.0.0"])
    registry.hits.clear()

    assert installed.version == version
    assert install(command, store, environ)[1].version == version
    assert registry.hits == []


def test_what_is_installed_is_compiled_already_since_servers_cannot_write_there(store, environ):
    spec, _ = install(PYPI, store, environ)

    assert [*store.directory(spec, "1.0.0").glob("lib/python3*/site-packages/**/made_tool*.pyc")]


def test_what_a_package_is_installed_with_is_held_to_its_range(store, environ):
    alone, _ = install(PYPI, store, environ)
    together, installed = install(PYPI.replace("uvx", "uvx --with made-lib<2"), store, environ)

    assert output(package_command(together, installed)) == "arg"
    locks = [(store.directory(spec, "1.0.0") / LOCK).read_text() for spec in (alone, together)]
    assert ["made-lib==1.2.0" in lock for lock in locks] == [False, True]


@pytest.mark.parametrize("command", [NPM, PYPI])
def test_half_an_install_is_removed_and_made_anew(command, store, environ):
    spec, _ = install(command, store, environ)
    directory = store.directory(spec, "1.0.0")
    (directory / MARKER).unlink()
    (directory / "left-over").touch()

    assert store.find(spec) is None
    assert output(package_command(*install(command, store, environ))) == "arg"
    assert not (directory / "left-over").exists()


@pytest.mark.parametrize(
    ("command", "lost"), [(NPM, "node_modules"), (PYPI, "bin")], ids=["npm", "pypi"]
)
def test_an_install_that_somebody_has_half_deleted_is_made_anew(command, lost, store, environ):
    spec, _ = install(command, store, environ)
    shutil.rmtree(store.directory(spec, "1.0.0") / lost)

    assert store.find(spec) is None
    assert output(package_command(*install(command, store, environ))) == "arg"


@pytest.mark.parametrize("command", [NPM, PYPI])
def test_several_processes_install_one_package_and_none_breaks_another(command, store, environ):
    assert results(processes(10, command, store, environ)) == ["1.0.0"] * 10


@pytest.mark.parametrize("command", [NPM, PYPI])
async def test_a_killed_install_does_not_keep_the_next_one_from_its_end(
    command, store, environ, registry
):
    registry.gate.clear()
    (first,) = processes(1, command, store, environ)
    await eventually(registry.asked.is_set, within=INSTALL)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    registry.gate.set()

    assert results(processes(1, command, store, environ)) == ["1.0.0"]


@pytest.mark.parametrize("command", ["npx no-such-thing@1.0.0", "uvx no-such-thing@1.0.0"])
def test_a_package_that_does_not_exist_fails_with_the_installers_own_words(command, store, environ):
    with pytest.raises(InstallError, match="no-such-thing"):
        install(command, store, environ)


@pytest.mark.parametrize("command", [NPM, PYPI])
def test_the_store_is_readable_for_others_whatever_the_callers_umask(command, store, environ):
    before = os.umask(0o077)
    try:
        spec, _ = install(command, store, environ)
    finally:
        os.umask(before)

    directory = store.directory(spec, "1.0.0")
    assert [p for p in directory.rglob("*") if not p.is_symlink() and not others_read(p)] == []


def others_read(path):
    wanted = 0o005 if path.is_dir() else 0o004
    return path.stat().st_mode & wanted == wanted


def test_a_program_that_the_package_lacks_is_refused_with_those_it_has(store, environ):
    spec, installed = install("npx -p @made/tool@1.0.0 other", store, environ)

    with pytest.raises(InstallError, match="no program other; it has: tool"):
        package_command(spec, installed)


def test_where_there_is_no_uv_pip_installs_the_same(store, environ):
    spec = parse_command(PYPI.split())
    job = Job(store.log_file("pip"), environ)
    directory, base = store.directory(spec, "1.0.0"), pypi.base_python()
    lock = pip.lock(["made-tool==1.0.0", "made-lib<2"], base, store, job)
    directory.mkdir(parents=True)
    (directory / "requirements.txt").write_text(lock)

    pip.fill(directory, base, store, job)

    names = [line.partition(" --hash=sha256:")[0] for line in lock.splitlines()]
    assert names == ["made-lib==1.2.0", "made-tool==1.0.0"]
    argv = [directory / "bin/python", directory / "bin/made-tool", "arg"]
    assert subprocess.check_output(argv, text=True).strip() == "arg"
