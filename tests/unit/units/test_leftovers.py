"""What nobody needs any more is found, and nothing else; what is in use never goes."""

import fcntl
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from autobot_mcp_bridge.config.places import resolve_places
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.disk.leftovers import TAKEN, Keep, Leftovers, What
from autobot_mcp_bridge.units.fetch.fetches import package_id
from autobot_mcp_bridge.units.packages.in_use import UnknownUseError, directories_in_use
from autobot_mcp_bridge.units.packages.job import Job
from autobot_mcp_bridge.units.packages.node import WHEEL
from autobot_mcp_bridge.units.packages.specs import parse_command
from autobot_mcp_bridge.units.packages.store import Installed, Store
from autobot_mcp_bridge.units.sandbox.confinement import Facts
from support.waiting import WITHIN


def spec(name, *command, **keys):
    return ServerSpec.model_validate({"name": name, "command": command or ("/bin/cat",), **keys})


class Host:
    """A host's directories, below one of the test's."""

    def __init__(self, root):
        self.root = root
        self.places = resolve_places(
            config_dir=root / "etc", state_dir=root / "lib" / "mcp-bridge", runtime_dir=root / "run"
        )
        self.store = Store(self.places.packages)
        self.store.prepare()
        self.staging, self.ended = root / "staging", root / "ended"

    def leftovers(self, *specs, **keys):
        facts = Facts(state=str(self.root / "lib"), cache=str(self.root / "cache"))
        return Leftovers(
            self.places,
            Keep(specs, **keys),
            facts,
            staging=self.staging,
            ended=self.ended,
        )

    def found(self, *specs, state=True, **keys):
        return [(it.what, it.name) for it in self.leftovers(*specs, **keys).find(state=state)]

    def gc(self, *specs, **keys):
        leftovers = self.leftovers(*specs, **keys)
        for each in leftovers.find(state=True):
            leftovers.take_away(each)
        leftovers.delete()

    def directory(self, *parts):
        path = self.root.joinpath(*parts)
        path.mkdir(parents=True)
        (path / "file").write_text("x", encoding="utf-8")
        return path

    def install(self, command, version, *, whole=True, settled=True, path=()):
        package = parse_command(command)
        directory = self.store.directory(package, version)
        directory.mkdir(parents=True)
        program = directory / "program"
        program.write_text("", encoding="utf-8")
        if whole:
            argv = {package.name: (str(program),)}
            self.store.complete(directory, Installed(version, "", argv, package.name, path))
        if settled:
            age(directory)
        return directory


def age(path):
    then = time.time() - 2 * 3600
    os.utime(path, (then, then))


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def test_a_removed_server_s_cache_goes_and_its_state_only_when_asked(host):
    for kind in ("cache", "lib"):
        for name in ("kept", "gone"):
            host.directory(kind, "private", "mcp-bridge", "acme", "web", name)
    kept = spec("kept", tenant="acme", project="web")

    assert host.found(kept, state=False) == [(What.CACHE, "acme.web.gone")]
    assert host.found(kept) == [(What.CACHE, "acme.web.gone"), (What.STATE, "acme.web.gone")]

    host.gc(kept)
    left = sorted(str(path.relative_to(host.root)) for path in host.root.glob("*/private/*/*/*/*"))
    assert left == [f"{kind}/private/mcp-bridge/acme/web/kept" for kind in ("cache", "lib")]
    assert host.found(kept) == []


def test_an_instance_that_still_has_units_keeps_its_files(host):
    host.directory("cache", "private", "mcp-bridge", "default", "-", "going")

    assert host.found(others=frozenset({"going"})) == []
    assert host.found() == [(What.CACHE, "going")]


def test_the_link_to_a_state_goes_with_it_and_empty_parents_too(host):
    real = host.directory("lib", "private", "mcp-bridge", "acme", "-", "gone")
    link = host.root / "lib" / "mcp-bridge" / "acme" / "-" / "gone"
    link.parent.mkdir(parents=True)
    link.symlink_to(real)

    host.gc()

    assert not (host.root / "lib" / "mcp-bridge" / "acme").exists()
    assert not (host.root / "lib" / "private" / "mcp-bridge" / "acme").exists()
    assert host.store.root.is_dir()


def test_what_is_no_server_s_directory_is_left_alone(host):
    for parts in (("packages", "cache", "uv"), ("tokens.d", "x", "y"), ("acme", "Web", "x")):
        host.directory("lib", "mcp-bridge", *parts)

    assert host.found() == []


def test_versions_that_a_server_means_and_the_ones_before_stay(host):
    job = Job(host.store.log_file("t"), {})
    opened, exact = ("npx", "-y", "@acme/open"), ("uvx", "exact==2.0.0")
    for version in ("1.0.0", "1.1.0", "1.2.0"):
        host.install(opened, version)
    for version in ("1.0.0", "2.0.0"):
        host.install(exact, version)
    host.store.remember(parse_command(opened), "1.1.0", job)
    host.store.remember(parse_command(opened), "1.2.0", job)
    specs = (spec("a", *opened), spec("b", *exact, enabled=False))

    assert host.found(*specs) == [(What.PACKAGE, "@acme/open@1.0.0"), (What.PACKAGE, "exact@1.0.0")]

    host.gc(*specs)
    assert host.store.find(parse_command(opened)).version == "1.2.0"
    assert host.store.roll_back(parse_command(opened), job).version == "1.1.0"
    assert host.found(*specs) == []


def test_what_a_unit_executes_and_what_that_needs_stays_whatever_the_files_say(host):
    wheel = host.store.directory(WHEEL, WHEEL.version)
    wheel.mkdir(parents=True)
    age(wheel)
    directory = host.install(("npx", "thing@1.0.0"), "1.0.0", path=(str(wheel / "bin"),))

    assert host.found(words=(str(directory / "program"),)) == [(What.INSTALL, wheel.name)]
    assert host.found(spec("a", "npx", "thing@1.0.0")) == []
    assert len(host.found()) == 2


def test_what_has_just_come_or_is_being_installed_stays(host):
    fresh = host.install(("npx", "fresh@1.0.0"), "1.0.0", settled=False)
    host.install(("npx", "@acme/busy@1.0.0"), "1.0.0", whole=False)
    lock = host.store.root / "locks" / "npm-@acme+busy.lock"
    with lock.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert host.found() == []

    age(fresh)
    assert host.found() == [(What.INSTALL, "@acme/busy@1.0.0"), (What.PACKAGE, "fresh@1.0.0")]


def test_while_a_unit_s_process_cannot_be_looked_at_nothing_is_known_to_be_unused(tmp_path):
    of_unit, of_others = tmp_path / "10", tmp_path / "11"
    for folder, group in (
        (of_unit, "0::/mcpbridge.slice/autobot-mcp-bridge@x.service"),
        (of_others, "0::/system.slice/cron.service"),
    ):
        folder.mkdir()
        (folder / "cgroup").write_text(group, encoding="utf-8")
        (folder / "cmdline").write_bytes(b"node\0/store/npm/@a/b@1.0.0/x.js\0")
        (folder / "maps").touch()
    real = Path.open

    def closed(path, *words):
        if path.name == "environ":
            raise PermissionError(path)
        return real(path, *words)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", closed)
        with pytest.raises(UnknownUseError, match="process 10 cannot"):
            directories_in_use(Path("/store"), tmp_path)
        shutil.rmtree(of_unit)
        found = directories_in_use(Path("/store"), tmp_path)
    assert found == {Path("/store/npm/@a/b@1.0.0")}


@pytest.mark.parametrize("how", ["argv", "environ"])
def test_what_a_process_uses_stays_until_it_ends(host, how):
    directory = host.install(("npx", "@acme/used@1.0.0"), "1.0.0")
    file = str(directory / "program")
    words = ["sleep", "60"] if how == "environ" else ["tail", "-f", file]
    environ = {"PATH": os.environ["PATH"], **({"USES": file} if how == "environ" else {})}
    process = subprocess.Popen(words, env=environ, stdin=subprocess.DEVNULL)
    try:
        assert host.found() == []
    finally:
        process.kill()
        process.wait(timeout=WITHIN)
    assert host.found() == [(What.PACKAGE, "@acme/used@1.0.0")]


def test_downloads_of_failed_installs_go_with_the_server_that_wanted_them(host):
    wanted = spec("a", "npx", "wanted")
    for command in (("npx", "wanted"), ("npx", "unwanted")):
        age(host.directory("staging", package_id(parse_command(command))))
    unwanted = package_id(parse_command(("npx", "unwanted")))
    age(host.directory("lib", "mcp-bridge", "packages", f".incoming-{unwanted}"))

    assert host.found(wanted) == [(What.INSTALL, unwanted), (What.DOWNLOAD, unwanted)]
    assert host.found(wanted, installing=frozenset({unwanted})) == []


def test_records_of_removed_servers_go(host):
    for name in ("kept", "gone"):
        folder = host.directory("ended", ".of", name)
        (folder / "file").unlink()
        (folder / f"1.{name}0").touch()
        (host.ended / f"{name}0.json").write_text(json.dumps({}), encoding="utf-8")

    host.gc(spec("kept"))

    assert sorted(path.name for path in host.ended.iterdir()) == [".of", "kept0.json"]


def test_what_a_killed_run_has_taken_away_is_deleted_by_the_next(host):
    host.directory("cache", "private", "mcp-bridge", f"{TAKEN}1", "x")
    host.install(("npx", "thing"), "1.0.0").rename(host.store.root / f"{TAKEN}2")

    host.gc()

    assert not list(host.root.glob(f"**/{TAKEN}*"))


@pytest.fixture
def deep(host):
    """A tree deeper than there are descriptors or frames, which pytest could not remove itself."""
    top = host.directory("lib", "private", "mcp-bridge", "acme", "web", "deep")
    at = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.symlink(host.directory("elsewhere"), "link", dir_fd=at)
    os.close(at)
    yield top
    subprocess.run(["rm", "-rf", host.root], check=True)


def test_a_tree_deeper_than_descriptors_and_frames_goes_too(host, deep):
    host.gc()

    assert not deep.exists()
    assert host.found() == []
    assert (host.root / "elsewhere" / "file").exists()
