"""The lab is real: what it says about a unit is what systemd enforces.

Every denial stands beside the same command without the setting, which succeeds. Both containers
boot to `running`; no unit of theirs is known to fail.
"""

import re

import pytest

from lab.problems import LabError, LabTimeoutError
from support.containers import entries, reaches

pytestmark = pytest.mark.lab

# Touches every page: memory that is only reserved counts for nobody.
EATER = "b = bytearray(96 << 20); b[::4096] = b'x' * len(b[::4096]); print(len(b))"
FORKER = """
import os, signal
made = 0
try:
    for made in range(20):
        if os.fork() == 0:
            signal.pause()
except BlockingIOError:
    print("refused after", made)
else:
    print("all")
"""
# Says how often the kernel made it wait for its next period.
BURNER = """
import re, time
from pathlib import Path
while time.process_time() < 0.2:
    pass
own = re.search(":cpu:(.*)", Path("/proc/self/cgroup").read_text())[1]
stat = Path("/sys/fs/cgroup/cpu" + own, "cpu.stat").read_text()
print(re.search("nr_throttled (.*)", stat)[1])
"""
INTERFACES = "import socket; print(sorted(name for _, name in socket.if_nameindex()))"


def transient(container, *words, **properties):
    """Run a command as a unit of its own with these properties."""
    options = [f"--property={name}={value}" for name, value in properties.items()]
    return container.run("systemd-run", "--quiet", "--pipe", "--wait", *options, "--", *words)


def python(container, program, **properties):
    return transient(container, "python3", "-c", program, **properties)


def test_the_machine_boots_to_running_with_the_suite_s_systemd(container):
    assert container.check("systemctl", "is-system-running", "--wait").strip() == "running"
    version = container.check("systemctl", "--version")
    assert re.match(rf"systemd {container.version} \(", version)


def test_a_unit_above_its_memory_limit_is_killed_and_its_control_is_not(container):
    within = python(container, EATER, MemoryMax="512M", MemorySwapMax="0")
    above = python(container, EATER, MemoryMax="32M", MemorySwapMax="0")

    assert within.checked().out.strip() == str(96 << 20)
    assert above.status != 0 and above.out == ""


def test_a_unit_gets_no_more_tasks_than_it_may_have(container):
    within = python(container, FORKER, TasksMax="64")
    above = python(container, FORKER, TasksMax="8")

    assert within.checked().out.strip() == "all"
    assert re.fullmatch(r"refused after \d", above.checked().out.strip())


def test_a_unit_gets_no_more_of_the_processor_than_its_quota(container):
    free = python(container, BURNER).checked().out
    limited = python(container, BURNER, CPUQuota="20%").checked().out

    assert int(free) == 0
    assert int(limited) > 0


def test_a_dynamic_user_is_neither_root_nor_left_behind(container):
    uid = int(transient(container, "id", "-u", DynamicUser="yes").checked().out)
    root = int(transient(container, "id", "-u").checked().out)

    assert (root, 61184 <= uid <= 65519) == (0, True)
    assert container.run("getent", "passwd", str(uid)).status != 0


def test_a_unit_with_a_private_network_sees_loopback_alone(container):
    private = python(container, INTERFACES, PrivateNetwork="yes").checked().out
    shared = python(container, INTERFACES).checked().out

    assert private.strip() == "['lo']"
    assert "host0" in shared


def test_the_loopback_of_a_private_network_is_up(container):
    program = (
        "import socket; s = socket.create_server(('127.0.0.1', 0));"
        "socket.create_connection(s.getsockname(), 2); print('up')"
    )

    assert python(container, program, PrivateNetwork="yes").checked().out.strip() == "up"


def test_a_credential_is_readable_for_its_unit_and_for_no_other_user(container):
    container.write("/etc/lab-secret", "s3cret", mode=0o600)
    read = ("sh", "-c", 'cat "$CREDENTIALS_DIRECTORY/word"')

    given = transient(container, *read, DynamicUser="yes", LoadCredential="word:/etc/lab-secret")
    refused = transient(container, "cat", "/etc/lab-secret", DynamicUser="yes")

    assert given.checked().out == "s3cret"
    assert refused.status != 0 and "Permission denied" in refused.err


def test_a_field_of_the_unit_finds_its_lines_in_the_journal(container):
    container.write(
        "/etc/systemd/system/lab-fields.service",
        "[Service]\nType=oneshot\nExecStart=echo said\nLogExtraFields=MCP_INSTANCE=one\n",
    )
    container.check("systemctl", "daemon-reload")
    container.check("systemctl", "start", "lab-fields.service")

    found = [entry["MESSAGE"] for entry in entries(container, "MCP_INSTANCE=one")]
    assert "said" in found
    assert entries(container, "MCP_INSTANCE=other") == []


async def test_a_state_of_a_unit_can_be_awaited(container):
    container.check("systemd-run", "--unit=lab-awaited", "--remain-after-exit", "sleep", "0.3")

    await reaches(container, "lab-awaited.service", ActiveState="active", SubState="exited")
    container.check("systemctl", "stop", "lab-awaited.service")
    await reaches(container, "lab-awaited.service", ActiveState="inactive")


def test_a_reboot_keeps_the_files_and_is_another_boot(container):
    boot = container.check("cat", "/proc/sys/kernel/random/boot_id"), container.state().boots
    container.write("/var/lib/lab/kept", "yes")
    container.check("touch", "/run/lab-forgotten")

    container.reboot()

    assert container.check("cat", "/var/lib/lab/kept") == "yes"
    assert container.run("test", "-e", "/run/lab-forgotten").status == 1
    assert container.state().boots == boot[1] + 1
    assert container.check("systemctl", "is-system-running", "--wait").strip() == "running"
    assert len(container.check("journalctl", "--list-boots", "--no-pager").splitlines()) >= 2


def test_a_command_that_takes_too_long_is_ended_with_its_children(container):
    words = "echo begun; setsid sleep 4321 & exec sleep 4322"
    with pytest.raises(LabTimeoutError, match="begun"):
        container.run("sh", "-c", words, timeout=0.5)

    assert container.run("pgrep", "-f", "sleep 432[12]").status == 1


def test_a_command_gets_its_input_and_gives_status_and_both_streams(container):
    done = container.run("sh", "-c", "cat; echo problem >&2; exit 7", stdin="input")

    assert (done.status, done.out, done.err) == (7, "input", "problem\n")
    with pytest.raises(LabError, match="problem"):
        done.checked()


def test_a_directory_is_copied_with_modes_and_belongs_to_root(container, tmp_path):
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    program = tmp_path / "tree" / "deep" / "program"
    program.write_text("#!/bin/sh\necho ran\n", encoding="utf-8")
    program.chmod(0o755)

    container.copy(tmp_path / "tree", "/opt/lab-tree")

    assert container.check("/opt/lab-tree/deep/program") == "ran\n"
    assert container.check("stat", "-c", "%U %a", "/opt/lab-tree/deep/program") == "root 755\n"


def test_the_suites_python_and_node_run(container):
    assert container.check("python3", "-c", "import venv, apt; print('ok')").strip() == "ok"
    assert int(container.check("node", "-p", "parseInt(process.versions.node)")) >= 18
