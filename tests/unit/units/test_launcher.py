"""The launcher alone, without systemd: what it hands over, and what it leaves to the server."""

import json
import os
import socket
import subprocess
import sys

import pytest

from rules.tree import ROOT
from support.handed import connect, take
from support.waiting import PATIENCE, WITHIN

LAUNCHER = ROOT / "templates" / "launch.py"
INVOCATION = "0123456789abcdef0123456789abcdef"
# systemd puts the socket at 3; `closed` are descriptors that it would never leave closed.
BECOME = """
import os, sys
listener, closed, *words = sys.argv[1:]
os.dup2(int(listener), 3)
for number in closed:
    os.close(int(number))
os.execv(words[0], words)
"""
# What a server finds. The fourth descriptor is the listing's own.
PROBE = """
import json, os
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
found = sorted(int(name) for name in os.listdir("/proc/self/fd"))
raw = open("/proc/self/environ", "rb").read().decode()
print(json.dumps({
    "descriptors": found, "ignored": int(status["SigIgn"], 16),
    "environment": dict(pair.split("=", 1) for pair in raw.split("\\0") if pair),
}))
"""
SHOW = ("/usr/bin/env", "python3", "-I", "-S", "-c", PROBE)


class Launcher:
    def __init__(self, folder):
        self.path = folder / "socket"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen()
        self.process = None

    def start(self, *argv, closed="", pass_fds=(), program=LAUNCHER, **environment):
        words = [sys.executable, "-I", "-S", "-c", BECOME, str(self.listener.fileno()), closed]
        self.process = subprocess.Popen(
            [*words, sys.executable, "-I", "-S", str(program), *argv],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[self.listener.fileno(), *pass_fds],
            env={"PATH": "/usr/bin:/bin", "INVOCATION_ID": INVOCATION, **environment},
        )

    def end(self):
        _, err = self.process.communicate(timeout=WITHIN * PATIENCE)
        return self.process.returncode, err.decode()

    def close(self):
        self.listener.close()
        if self.process is not None:
            self.process.kill()
            self.process.communicate()


@pytest.fixture
def launcher(tmp_path):
    made = Launcher(tmp_path)
    yield made
    made.close()


def shown(launcher):
    with take(connect(launcher.path)) as handed:
        assert handed.rest() == b""
        return json.loads(handed.read())


def test_the_pipes_come_with_the_invocation_and_the_connection_ends_with_exec(launcher):
    launcher.start("/bin/cat")
    with take(connect(launcher.path)) as handed:
        assert handed.invocation == INVOCATION
        assert handed.rest() == b""
        handed.say("word")
        assert handed.line() == "word"
        os.close(handed.stdin)
        handed.stdin = -1
        assert handed.read() == b""
    assert launcher.end() == (0, "")


@pytest.mark.parametrize("said", [b"", b"word"])
def test_a_connection_that_nobody_holds_is_passed_over(launcher, said):
    for _ in range(3):
        with connect(launcher.path) as gone:
            gone.sendall(said)
    launcher.start("/bin/cat")
    with take(connect(launcher.path)) as handed:
        handed.say(1)
        assert handed.line() == 1


def test_a_program_that_cannot_be_started_is_an_error_line_a_message_and_status_203(launcher):
    launcher.start("/no/such/program")
    with take(connect(launcher.path)) as handed:
        assert "/no/such/program" in handed.error()
        assert handed.read() == b""
    status, err = launcher.end()
    assert status == 203
    assert "No such file or directory" in err


@pytest.mark.parametrize("name", ['/no/"such"', "/no/\\such", "/no/sücħ🙂", "/no/\x01such\n'"])
def test_an_error_line_is_json_whatever_the_program_is_called(launcher, name):
    launcher.start(name)
    with take(connect(launcher.path)) as handed:
        assert "No such file or directory" in handed.error()
    assert launcher.end()[0] == 203


def test_a_failed_start_has_its_status_although_the_peer_has_gone(launcher, tmp_path):
    # The open of a fifo waits for its other end: the credential holds up the launcher.
    folder = tmp_path / "credentials"
    folder.mkdir()
    os.mkfifo(folder / "NAME")
    launcher.start("/no/such/program", CREDENTIALS_DIRECTORY=str(folder))
    take(connect(launcher.path)).close()
    (folder / "NAME").write_bytes(b"secret")

    assert launcher.end()[0] == 203


def test_nothing_to_start_is_a_failed_start(launcher):
    launcher.start()
    with take(connect(launcher.path)) as handed:
        assert "cannot be started" in handed.error()
    assert launcher.end()[0] == 203


def test_the_environment_is_made_from_nothing(launcher, tmp_path):
    folder = tmp_path / "credentials"
    folder.mkdir()
    (folder / "TOKEN").write_bytes(b"one\ntwo\n\n")
    given = {
        "HOME": "/home",
        "LANG": "C.UTF-8",
        "MCP_BRIDGE_ENV_LOG_LEVEL": "in fo=é",
        "MCP_BRIDGE_ENV_INVOCATION_ID": "mine",
        "MCP_BRIDGE_ENV_PATH": "/bin:/usr/bin:/own",
        "USER": "mb",
        "LISTEN_FDS": "1",
        "LC_ALL": "C",
        "LD_DEBUG": "",
        "CREDENTIALS_DIRECTORY": str(folder),
    }
    launcher.start(*SHOW, **given)

    assert shown(launcher)["environment"] == {
        "PATH": "/bin:/usr/bin:/own",
        "HOME": "/home",
        "LANG": "C.UTF-8",
        "LOG_LEVEL": "in fo=é",
        "INVOCATION_ID": "mine",
        "TOKEN": "one\ntwo\n",
    }


def test_of_a_credential_with_a_dot_the_variable_gets_the_path(launcher, tmp_path):
    folder = tmp_path / "credentials"
    folder.mkdir()
    (folder / "KEY.file").write_bytes(b"\0\xff\n")
    launcher.start(*SHOW, CREDENTIALS_DIRECTORY=str(folder))

    assert shown(launcher)["environment"]["KEY"] == f"{folder}/KEY.file"


def test_a_credential_that_no_variable_can_hold_is_a_failed_start_without_its_value(
    launcher, tmp_path
):
    folder = tmp_path / "credentials"
    folder.mkdir()
    (folder / "TOKEN").write_bytes(b"se\0cret")
    launcher.start("/bin/cat", CREDENTIALS_DIRECTORY=str(folder))
    with take(connect(launcher.path)) as handed:
        assert "secret" not in (text := handed.error()) and "null byte" in text
    assert launcher.end()[0] == 203


def test_the_server_has_no_descriptor_above_2_whatever_was_passed(launcher):
    more = [os.open("/dev/null", os.O_RDONLY) for _ in range(5)]
    launcher.start(*SHOW, pass_fds=more)
    try:
        # 3 is the probe's own listing.
        assert shown(launcher)["descriptors"] == [0, 1, 2, 3]
    finally:
        for descriptor in more:
            os.close(descriptor)


@pytest.mark.parametrize("closed", ["0", "1", "01", "2", "012"])
def test_the_pipes_are_0_and_1_although_those_were_closed(launcher, closed):
    launcher.start(*SHOW, closed=closed)

    assert shown(launcher)["descriptors"] == [0, 1, 2, 3]


def test_the_server_ignores_no_signal(launcher):
    launcher.start("/bin/sed", "-n", "s/SigIgn:[[:space:]]*//p", "/proc/self/status")
    with take(connect(launcher.path)) as handed:
        # Above 31 are the real-time ones, which a test runner's parent may have ignored for good.
        assert int(handed.read(), 16) & 0x7FFFFFFF == 0


def test_without_a_live_connection_it_ends_in_time_and_starts_nothing(launcher, tmp_path):
    text = LAUNCHER.read_text(encoding="utf-8")
    hasty = tmp_path / "launch.py"
    hasty.write_text(text.replace("WAIT = 30.0", "WAIT = 0.2", 1), encoding="utf-8")
    connect(launcher.path).close()
    launcher.start("/bin/echo", "started", program=hasty)

    assert "WAIT = 30.0  # seconds" in text
    assert launcher.end() == (0, "")


def test_the_launcher_is_below_80_lines():
    text = LAUNCHER.read_text(encoding="utf-8")

    assert len([line for line in text.splitlines() if line]) < 80
