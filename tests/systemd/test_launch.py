"""A server started by a connection to its socket: its pipes, its environment, its failures."""

import stat

import pytest

from support.containers import entries, properties, reaches
from support.installed import SERVERS, instance, spec_of
from support.waiting import eventually

pytestmark = pytest.mark.lab

ECHO = ("/usr/bin/python3", f"{SERVERS}/echo.py")
HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}}
SHOW_ENVIRONMENT = ("/bin/cat", "/proc/self/environ")


def request(handed, number, method, params):
    handed.say({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    answer = handed.line()
    assert answer["id"] == number
    return answer["result"]


def output(one):
    """All that a server writes which needs no input."""
    with one.start() as handed:
        assert handed.rest() == b""
        return handed.read()


def test_a_connection_starts_the_server_and_brings_its_pipes(installed):
    with instance(installed, spec_of("echo", *ECHO, tenant="acme", project="web")) as one:
        assert properties(installed, one.service, "ActiveState") == {"ActiveState": "inactive"}
        with one.start() as handed:
            assert handed.rest() == b""
            assert request(handed, 1, "initialize", HANDSHAKE)["serverInfo"]["name"] == "fake"
            called = request(handed, 2, "tools/call", {"name": "echo", "arguments": {"text": "é"}})
            known = properties(installed, one.service, "InvocationID", "ActiveState", "User")
        assert called["content"][0]["text"] == "é"
        assert known["InvocationID"] == handed.invocation
        assert known["ActiveState"] == "active"
        assert known["User"].startswith("mb-")


async def test_the_end_of_stdin_ends_the_unit_and_the_next_connection_is_another_invocation(
    installed,
):
    with instance(installed, spec_of("again")) as one:
        with one.start() as handed:
            first = handed.invocation
        await reaches(installed, one.service, ActiveState="inactive", Result="success")
        with one.start() as handed:
            assert handed.invocation != first
            handed.say("word")
            assert handed.line() == "word"


def test_connections_that_nobody_holds_are_passed_over(installed):
    with instance(installed, spec_of("skip")) as one:
        for _ in range(5):
            one.connect().close()
        with one.start() as handed:
            handed.say(1)
            assert handed.line() == 1


async def test_a_unit_started_by_hand_under_its_alias_waits_for_the_connection(installed):
    with instance(installed, spec_of("hand", tenant="acme")) as one:
        installed.check("systemctl", "start", "mcp-bridge@acme.hand.service")
        known = await reaches(installed, one.service, ActiveState="active")
        before = properties(installed, one.service, "InvocationID")["InvocationID"]
        with one.start() as handed:
            assert handed.invocation == before
        assert known


async def test_a_program_that_cannot_be_started_says_so_on_the_connection(installed):
    with instance(installed, spec_of("missing", "/opt/no-such-program")) as one:
        with one.start() as handed:
            assert "No such file or directory: '/opt/no-such-program'" in handed.error()
            assert handed.read() == b""
        await reaches(installed, one.service, Result="exit-code", ExecMainStatus="203")
        found = entries(installed, "MCP_INSTANCE=missing", "SYSLOG_IDENTIFIER=mcp-bridge@missing")
        assert any("No such file" in str(entry["MESSAGE"]) for entry in found)


def test_the_environment_is_the_listed_variables_and_the_credentials_and_nothing_else(installed):
    installed.write("/etc/credstore/github-acme", "s3cret value\n", mode=0o600)
    keys = {"env": {"LOG_LEVEL": "info"}, "credentials": {"TOKEN": "github-acme"}}
    spec = spec_of("variables", *SHOW_ENVIRONMENT, **keys)
    with instance(installed, spec) as one:
        pairs = output(one).decode().split("\0")[:-1]
        shown = installed.check("systemctl", "show", one.service)

    home = "mcp-bridge/default/-/variables"
    assert dict(pair.split("=", 1) for pair in pairs) == {
        "PATH": "/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": f"/var/lib/{home}",
        **dict.fromkeys(("USER", "LOGNAME"), spec.id.unit_user),
        "LANG": "C.UTF-8",
        "XDG_CACHE_HOME": f"/var/cache/{home}",
        "PYTHONUNBUFFERED": "1",
        "MCP_INSTANCE": "variables",
        "LOG_LEVEL": "info",
        "TOKEN": "s3cret value",
    }
    assert "MCP_BRIDGE_ENV_LOG_LEVEL=info" in shown and "s3cret" not in shown


def test_a_variable_of_the_server_acts_on_nothing_else_of_the_unit(installed):
    env = {"LD_PRELOAD": "/no/such.so", "INVOCATION_ID": "f" * 32, "CREDENTIALS_DIRECTORY": "/etc"}
    with instance(installed, spec_of("preload", *SHOW_ENVIRONMENT, env=env)) as one:
        with one.start() as handed:
            data, invocation = handed.read(), handed.invocation
        # Queued behind the end of the recorder, which is root's.
        installed.check("systemctl", "stop", one.service)
        said = entries(installed, f"_SYSTEMD_INVOCATION_ID={invocation}")

    assert b"LD_PRELOAD=/no/such.so" in data and b"INVOCATION_ID=ffff" in data
    complaints = [entry["_UID"] for entry in said if "LD_PRELOAD" in str(entry["MESSAGE"])]
    assert len(complaints) == 1 and complaints[0] != "0"


# Signals 32 and 33: whatever posix_spawn(3) of glibc starts, such as by make(1), ignores them, and
# with it the whole container; no program can set them by sigaction(2).
_OF_GLIBC = 0b11 << 31


def test_the_server_has_no_descriptor_above_2_and_ignores_no_signal(installed):
    program = (
        "import os; s = open('/proc/self/status').read();"
        "print(sorted(os.listdir('/proc/self/fd')), s.split('SigIgn:')[1].split()[0])"
    )
    # Python itself ignores SIGPIPE and SIGXFSZ; a shell shows what it was given.
    script = (
        "ls /proc/self/fd | sort -n | tr '\\n' ' '; sed -n 's/SigIgn:[^0-9]*//p' /proc/self/status"
    )
    with instance(installed, spec_of("bare", "/bin/sh", "-c", script)) as one:
        descriptors, ignored = output(one).decode().rsplit(" ", 1)
    control = installed.check(
        "systemd-run", "--quiet", "--pipe", "--wait", "python3", "-c", program
    )

    assert descriptors == "0 1 2 3"  # 3 is the listing's own
    assert int(ignored, 16) & ~_OF_GLIBC == 0
    assert int(control.split()[-1], 16) & ~_OF_GLIBC != 0


async def test_a_set_up_that_fails_ends_with_the_socket_s_failure(installed):
    with instance(installed, spec_of("broken", credentials={"TOKEN": "no-such-secret"})) as one:
        with pytest.raises((EOFError, ConnectionResetError)):
            one.start()
        await reaches(installed, one.socket, ActiveState="failed", Result="trigger-limit-hit")
        known = properties(installed, one.service, "Result", "ExecMainStatus")
        assert known == {"Result": "exit-code", "ExecMainStatus": "243"}

        installed.write("/etc/credstore/no-such-secret", "now")
        try:
            # systemd goes on counting: a connection within the 4 s of the limit fails it again.
            with await eventually(lambda: started_again(one), within=15) as handed:
                handed.say(1)
                assert handed.line() == 1
        finally:
            installed.check("rm", "/etc/credstore/no-such-secret")


def started_again(one):
    one.container.run("systemctl", "start", one.socket)
    try:
        return one.start()
    except (EOFError, OSError):
        return None


def test_a_program_with_an_odd_path_is_started(installed):
    program = "/srv/odd %h $HOME 'q' \"d\" a:b \\/p"
    installed.check("sh", "-c", 'mkdir -p "${1%/*}"; cp /bin/cat "$1"', "sh", program)
    with instance(installed, spec_of("odd", program, "/etc/hostname")) as one:
        assert output(one).decode() == installed.check("cat", "/etc/hostname")


def test_the_socket_is_for_the_proxy_s_group_alone(installed):
    with instance(installed, spec_of("guarded")) as one:
        path = f"/run/mcp-bridge/{one.name}.sock"
        found = one.path(path).lstat()
        group = installed.check("stat", "-c", "%U %G", path)

    assert stat.S_ISSOCK(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o660
    assert group == "root mcp-bridge\n"


def test_the_longest_name_has_a_socket(installed):
    longest = {"tenant": "a" * 32, "project": "b" * 32, "name": "c" * 14}
    with instance(installed, spec_of(longest.pop("name"), **longest)) as one:
        assert len(one.name) == 80
        with one.start() as handed:
            handed.say(1)
            assert handed.line() == 1


async def test_a_stop_of_the_socket_stops_the_server(installed):
    with instance(installed, spec_of("stopped")) as one, one.start() as handed:
        assert handed.rest() == b""
        installed.check("systemctl", "stop", "mcp-bridge@stopped.socket")
        await reaches(installed, one.service, ActiveState="inactive", Result="success")
        assert handed.read() == b""


async def test_an_enabled_socket_comes_and_goes_with_the_target(installed):
    with instance(installed, spec_of("wanted")) as one:
        installed.check("systemctl", "stop", one.socket)
        installed.check("systemctl", "enable", one.socket)
        try:
            installed.check("systemctl", "start", "autobot-mcp-bridge.target")
            await reaches(installed, one.socket, ActiveState="active")
            installed.check("systemctl", "stop", "autobot-mcp-bridge.target")
            await reaches(installed, one.socket, ActiveState="inactive")
            assert installed.run("test", "-e", f"/run/mcp-bridge/{one.name}.sock").status == 1
        finally:
            installed.check("systemctl", "disable", one.socket)
        assert installed.run("systemctl", "is-enabled", one.socket).out.strip() == "disabled"


def test_an_instance_without_a_drop_in_does_not_start_and_says_why(installed):
    done = installed.run("systemctl", "start", "mcp-bridge@nobody.service")

    assert done.status != 0
    assert "bad unit file setting" in done.err or "not found" in done.err, done.err
