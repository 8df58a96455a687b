"""The virtual machine itself: what a test may rely on."""

import socket

import pytest

from lab import qemu
from lab.problems import LabTimeoutError

REACHES = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"


@pytest.mark.vm
def test_a_command_has_its_status_and_its_streams(vm):
    done = vm.run("sh", "-c", 'cat; echo "$1" >&2; exit 3', "sh", "two  words", stdin="in")

    assert (done.status, done.out, done.err) == (3, "in", "two  words\n")


@pytest.mark.vm
def test_a_command_that_takes_too_long_is_ended(vm):
    with pytest.raises(LabTimeoutError, match="sleep 600"):
        vm.run("sleep", "600", timeout=0.1)

    assert vm.run("pgrep", "-x", "sleep").status == 1


@pytest.mark.vm
def test_a_file_comes_in_as_root_s_with_its_mode(vm):
    vm.write("/opt/new/directory/file", "text\n", mode=0o750)

    assert vm.check("cat", "/opt/new/directory/file") == "text\n"
    assert vm.check("stat", "-c", "%U %a", "/opt/new/directory/file") == "root 750\n"


@pytest.mark.vm
def test_no_way_leads_out_of_it(vm):
    with socket.create_server(("127.0.0.1", 0)) as here:
        # The addresses of qemu's user network: the machine's own, and this host's.
        out = vm.run("python3", "-c", REACHES, "10.0.2.2", str(here.getsockname()[1]))
    own = vm.run("python3", "-c", REACHES, "10.0.2.15", "22")

    assert (out.status, own.status) == (1, 0), out.err


def test_what_is_missing_for_it_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr(qemu.os, "geteuid", lambda: 0)
    monkeypatch.setattr(qemu.shutil, "which", lambda name, path: None if "q" in name else name)

    assert qemu.unavailable() == (
        "not installed: qemu-system-x86_64; run: apt-get install qemu-system-x86"
    )
