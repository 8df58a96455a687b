"""A lab ends completely, however it ends; and its containers see each other and nobody else."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lab import labs, lent, network
from lab.places import CHECKOUT, PREFIX, Lab
from lab.problems import LabError
from lab.spec import Bind
from support import proc
from support.waiting import eventually

pytestmark = pytest.mark.lab

SUITE = "bookworm"
SCRIPT = CHECKOUT / "tests" / "lab" / "lab.py"


def traces(lab, name=""):
    """What the kernel, nspawn and the disk hold of a lab, or of one container of it."""
    word = f"{PREFIX}{lab.id}-{name}"
    folder = str(lab.folder / name)
    found = [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/{word}*")]
    found += [str(path) for path in Path("/run/netns").glob(f"{word}*")]
    found += [str(path) for path in Path("/run/systemd/nspawn").glob(f"*/{word}*")]
    for mounts in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            text = mounts.read_text(encoding="utf-8")
        except OSError:
            continue
        found += [line for line in text.splitlines() if f"{folder}/" in line or word in line]
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = command.read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        found += [words] if word in words or f"{lab.id}\0{name}\0" in words else []
    return found + ([folder] if Path(folder).exists() else [])


@pytest.fixture
def own(lab):
    """A container that the test may treat as it likes."""
    made = labs.up(lab, "own", SUITE)
    yield made
    made.down()


def test_nothing_is_left_after_down(lab, own):
    own.run("sh", "-c", "sleep 4323 >/dev/null 2>&1 & systemd-run sleep 4324")
    assert len(traces(lab, "own")) > 5

    own.down()

    assert traces(lab, "own") == []


async def test_nothing_runs_on_after_a_kill_of_the_keeper_and_down_removes_the_rest(lab, own):
    state = own.state()
    os.kill(state.keeper, signal.SIGKILL)

    await eventually(lambda: not proc.alive(state.leader), what="the container's end")
    with pytest.raises(LabError, match="not up"):
        own.run("true")
    own.down()
    assert traces(lab, "own") == []


@pytest.fixture
def owner():
    """A process for labs to belong to, which does nothing."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


async def test_a_lab_whose_owner_is_killed_removes_itself(lab, owner):
    theirs = Lab(lab.cache, f"{lab.id[:-1]}o", owner=owner.pid)
    up = labs.up(theirs, "orphan", SUITE)
    assert up.run("true").status == 0

    owner.kill()

    await eventually(lambda: not traces(theirs), within=20, what="the end of the lab")
    up.down()


async def test_what_a_dead_lab_has_left_is_swept_and_a_living_one_is_not_touched(lab, own, owner):
    dead = Lab(lab.cache, f"{lab.id[:-1]}x", owner=owner.pid)
    up = labs.up(dead, "left", SUITE)
    # The keeper first, so that nobody is there to clean up.
    os.kill(up.state().keeper, signal.SIGKILL)
    owner.kill()
    owner.wait()
    await eventually(lambda: not up.is_up, what="the keeper's end")
    assert traces(dead)

    labs.sweep(lab.cache)

    assert traces(dead) == []
    assert own.run("true").status == 0
    up.down()


async def test_containers_reach_each_other_and_have_no_way_out(container, own):
    serve = ("python3", "-m", "http.server", "8099", "--directory", "/etc/apt")
    own.check("systemd-run", "--unit=lab-listen", *serve)

    def answered():
        try:
            with network.connect(own.place, 8099) as connected:
                connected.sendall(b"GET / HTTP/1.0\r\n\r\n")
                return connected.recv(9)
        except LabError:
            return b""  # not listening yet

    assert await eventually(answered, within=20) == b"HTTP/1.0 "
    url = f"http://{own.place.address.read_text(encoding='utf-8')}:8099/"
    program = f"import urllib.request; print(urllib.request.urlopen({url!r}, timeout=5).status)"
    assert container.check("python3", "-c", program).strip() == "200"
    assert "default" not in container.check("ip", "route", "show")


def test_lab_addresses_are_for_processes_within_the_lab_s_network(lab, own):
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from lab import network; from lab.places import Lab\n"
        "network.guard(Lab(Path(sys.argv[2]), sys.argv[3]))"
    )
    words = (sys.executable, "-c", program, str(CHECKOUT / "tests"), str(lab.cache), lab.id)

    network.inside(lab, *words).checked()
    with pytest.raises(LabError, match="only from within"):
        network.guard(lab)


def test_a_bound_directory_is_seen_and_cannot_be_changed(lab, tmp_path):
    (tmp_path / "a:b").mkdir()
    (tmp_path / "a:b" / "file").write_text("seen", encoding="utf-8")
    up = labs.up(lab, "bound", SUITE, binds=[Bind(str(tmp_path / "a:b"), "/mnt/lent")])
    try:
        assert up.check("cat", "/mnt/lent/file") == "seen"
        assert "Read-only" in up.run("touch", "/mnt/lent/other").err
        up.check("touch", "/mnt/control")
    finally:
        up.down()


def test_a_container_on_the_host_s_network_has_its_package_settings_read_only(lab, monkeypatch):
    monkeypatch.setenv("PIP_TIMEOUT", "77")
    up = labs.up(lab, "setup", SUITE, host_network=True)
    try:
        names = "import socket; print(sorted(name for _, name in socket.if_nameindex()))"
        here = sorted(name for _, name in socket.if_nameindex())
        assert up.check("python3", "-c", names).strip() == str(here)
        assert up.check("printenv", "PIP_TIMEOUT").strip() == "77"
        lent_paths = [(path, inside) for path, inside in lent.paths() if path.is_file()]
        assert lent_paths
        for path, inside in lent_paths:
            assert up.run("cat", str(inside)).out == path.read_text(encoding="utf-8")
            assert up.run("sh", "-c", f"echo >> {inside}").status != 0
        assert up.check("systemctl", "is-system-running", "--wait").strip() == "running"
    finally:
        up.down()


def test_what_a_setting_names_is_lent_but_never_the_system_s_own_directories(monkeypatch):
    lendable = Path("/var/lib")
    named = f"/usr /usr/bin / /etc /dev/shm {lendable}/ {lendable}/simple"
    monkeypatch.setenv("PIP_FIND_LINKS", named)

    found = {path for path, _ in lent.paths()}

    assert lendable in found
    assert not found & {Path(word) for word in ("/usr", "/usr/bin", "/", "/etc", "/dev/shm")}


def test_the_command_line_goes_through_a_container_s_life(lab, tmp_path):
    env = {**os.environ, "MCP_BRIDGE_LAB_CACHE": str(tmp_path)}
    # The bases of this run, and a lab of its own: another cache is another lab.
    (tmp_path / "bases").symlink_to(lab.cache / "bases")
    file = tmp_path / "file"
    file.write_text("copied", encoding="utf-8")

    def run(*words, stdin=""):
        command = [sys.executable, str(SCRIPT), *words]
        return subprocess.run(
            command, env=env, input=stdin, capture_output=True, text=True, timeout=60, check=False
        )

    try:
        assert run("up", "cli", "--suite", SUITE).stderr == ""
        assert run("list").stdout.split()[:3] == ["cli", SUITE, "up"]
        assert run("copy", "cli", str(file), "/opt/file").returncode == 0
        assert run("reboot", "cli").returncode == 0
        done = run("exec", "cli", "--", "sh", "-c", "cat /opt/file -; exit 3", stdin=" in")
        assert (done.returncode, done.stdout) == (3, "copied in")
        assert run("exec", "cli", "--timeout", "0.2", "--", "sleep", "60").returncode == 124
        assert run("address", "cli").stdout.strip() in run("net", "--", "ip", "neigh").stdout + (
            run("exec", "cli", "--", "ip", "address").stdout
        )
    finally:
        assert run("down", "--all").returncode == 0
    assert run("list").stdout == ""
    assert run("exec", "cli", "true").stderr.strip() == "cli is not up"
