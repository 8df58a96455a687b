"""Twelve servers broken on purpose: doctor names the cause, and what it prints makes them work."""

import asyncio
import json
from collections.abc import Iterator

import pytest

from lab import recipe
from lab.places import Lab
from support.client import code_of
from support.containers import properties
from support.installed import SERVERS
from support.product import Product, installed_product
from support.waiting import eventually

pytestmark = pytest.mark.lab

PYTHON = "/usr/bin/python3"
BROKEN = f"{SERVERS}/broken.py"
EXAMINE_WITHIN = 180.0
DROP_INS = "/etc/systemd/system/autobot-mcp-bridge@{}.service.d"
# What a doctor makes and removes again.
TRACES = (
    "ls -d /run/systemd/system/autobot-mcp-bridge@doctor-* /run/mcp-bridge/doctor-* "
    "/run/mcp-bridge/ended/.of/doctor-* 2>/dev/null; "
    "systemctl list-units --all --plain --no-legend 'autobot-mcp-bridge@doctor-*'"
)


def server(name, way, *arguments, start="5s", command=PYTHON, **keys):
    words = [command, BROKEN, way, *arguments]
    return {"name": name, "command": words, "timeouts": {"start": start}, **keys}


# Name: the definition, the stable word, and what the first line says.
BROKEN_ONES = {
    "seccomp": (
        server("seccomp", "seccomp"),
        "syscall_denied",
        ("setpriority", "SystemCallFilter=setpriority"),
    ),
    "code": (
        server("code", "code"),
        "code_at_run_time",
        ("writable and executable", "MemoryDenyWriteExecute=no"),
    ),
    "netlink": (
        server("netlink", "netlink"),
        "address_family_denied",
        ("RestrictAddressFamilies=AF_NETLINK",),
    ),
    "noexec": (
        server("noexec", "noexec"),
        "not_executable",
        ("executes a file from /var/lib/mcp-bridge/default/-/noexec", "NoExecPaths="),
    ),
    "memory": (
        server("memory", "memory", limits={"memory": "64M"}),
        "memory_limit",
        ("limits.memory", '"limits": {"memory": "128M"}'),
    ),
    "program": (
        server("program", "healthy", command="/usr/local/bin/python3"),
        "program_missing",
        ("/usr/local/bin/python3", PYTHON),
    ),
    "credential": (
        server("credential", "credential", credentials={"API_KEY": "absent"}),
        "no_credential",
        ("API_KEY", "no secret absent", "run: mcp-bridge secret set absent"),
    ),
    "home": (
        server("home", "home", env={"HOME": "/srv"}),
        "home_unwritable",
        ("HOME", "/var/lib/mcp-bridge/default/-/home"),
    ),
    "name": (
        server("name", "name"),
        "network_needed",
        ("needs the network",),
    ),
    "noise": (
        server("noise", "noise"),
        "stdout_noise",
        ("'[info] server/discover ...'", "stderr"),
    ),
    "buffered": (
        server("buffered", "buffered", env={"PYTHONUNBUFFERED": ""}),
        "stdout_buffered",
        ("buffer", '"PYTHONUNBUFFERED": "1"'),
    ),
    "slow": (
        server("slow", "slow", "4", start="2s"),
        "slow_start",
        ("timeouts.start is 2 s", '"timeouts": {"start": '),
    ),
}
# Beyond the twelve.
MORE = {
    "write": (
        server("write", "write", "/srv/data"),
        "path_read_only",
        ('"paths": {"write": ["/srv/data"]}',),
    ),
    "read": (
        server("read", "read", "/home/alice/file"),
        "path_hidden",
        ("ProtectHome=", '"paths": {"read": ["/home/alice"]}'),
    ),
    "many": (
        server("many", "many", "200", limits={"open_files": 64}),
        "open_files_limit",
        ('"limits": {"open_files": 256}',),
    ),
}
HOME = "mkdir -p /srv/data /home/alice; chmod 757 /srv/data; chmod 755 /home/alice; echo x > /home/alice/file"


@pytest.fixture(scope="module", params=recipe.SUITES)
def host(request: pytest.FixtureRequest, lab: Lab) -> Iterator[Product]:
    """The product, in a container whose resolver has an address for every name."""
    made = installed_product(lab, request.param, f"doctor-{request.param[:4]}")
    made.write("/etc/resolv.conf", "nameserver 127.0.0.1\n")
    names = ("systemd-run", "--unit=names", PYTHON, f"{SERVERS}/names.py")
    made.container.check(*names)
    made.container.check("sh", "-ec", HOME)
    yield made
    made.container.down()


async def run(host, *words):
    return await asyncio.to_thread(lambda: host.container.run(*words, timeout=EXAMINE_WITHIN))


async def check(host, *words):
    return await asyncio.to_thread(host.container.check, *words)


async def apply(host, *servers):
    host.write_servers(*servers)
    await check(host, "mcp-bridge", "apply")


async def examine(host, name, *options):
    """The exit status and what was found."""
    done = await run(host, "mcp-bridge", "doctor", name, "--json", *options)
    assert done.out, done.err
    return done.status, json.loads(done.out)


def traces(host):
    return host.container.run("sh", "-c", TRACES).out


async def outcome(host, name):
    """The text of a call, or the word of its error."""
    async with host.modern(name) as client:
        answer = await client.call("one", within=20.0)
        return code_of(answer) if "error" in answer else answer["result"]["content"][0]["text"]


async def served(host, name):
    async def is_so():
        return await outcome(host, name) == "served"

    await eventually(is_so, within=20)


def merged(definition, key):
    """A definition with a part of another one in it."""
    both = dict(definition)
    for name, value in key.items():
        nested = isinstance(value, dict) and isinstance(both.get(name), dict)
        both[name] = {**both[name], **value} if nested else value
    return both


async def mend(host, definition, found):
    """Do what doctor has printed, and nothing else."""
    name = definition["name"]
    if found["drop_in"]:
        assert found["drop_in_file"] == f"{DROP_INS.format(name)}/90-doctor.conf"
        host.write(found["drop_in_file"], "\n".join(("[Service]", *found["drop_in"], "")))
        await check(host, "systemctl", "daemon-reload")
    if found["code"] == "no_credential":
        command = found["advice"].partition("run: ")[2]
        await check(host, "sh", "-c", f"echo key | {command}")
    await apply(host, merged(definition, found["key"]))
    await check(host, "mcp-bridge", "reset", name)


@pytest.mark.parametrize("name", [*BROKEN_ONES, *MORE])
async def test_a_broken_server_is_named_and_what_is_printed_makes_it_work(
    host, name, record_property
):
    definition, code, words = {**BROKEN_ONES, **MORE}[name]
    await apply(host, definition)
    assert await outcome(host, name) in {"start_failed", "install_failed", "credential_missing"}

    status, found = await examine(host, name)

    record_property("tries", found["tries"])
    assert (status, found["code"]) == (1, code), found
    assert found["summary"].startswith(f"{name} ")
    assert [word for word in words if word not in found["summary"]] == []
    assert traces(host) == ""

    await mend(host, definition, found)
    await served(host, name)
    status, found = await examine(host, name)
    assert (status, found["code"]) == (0, None), found
    assert traces(host) == ""
    await check(host, "rm", "-rf", f"{DROP_INS.format(name)}/90-doctor.conf")


async def test_a_healthy_server_gets_a_clean_bill(host):
    await apply(host, server("healthy", "healthy"))

    done = await run(host, "mcp-bridge", "doctor", "healthy")

    first, *rest = done.out.splitlines()
    assert done.status == 0
    assert first.startswith("healthy starts: it answers initialize")
    assert [line for line in rest if line.startswith(("warn", "fail"))] == []
    assert traces(host) == ""


async def test_a_servers_own_fault_is_told_as_such_with_its_last_words(host):
    await apply(host, server("bug", "bug"))

    status, found = await examine(host, "bug")

    assert (status, found["code"]) == (1, "server_fault")
    assert "by its own fault" in found["summary"]
    assert "EXAMPLE_URL" in found["summary"]
    assert (found["key"], found["drop_in"]) == ({}, [])
    assert found["last_words"][-1].startswith("KeyError")


async def test_two_things_that_are_missing_at_once_are_both_found(host):
    definition = server("two", "two")
    await apply(host, definition)

    status, found = await examine(host, "two")

    assert status == 1
    assert sorted(found["drop_in"]) == [
        "MemoryDenyWriteExecute=no",
        "RestrictAddressFamilies=AF_NETLINK",
    ]
    await mend(host, definition, found)
    await served(host, "two")
    await check(host, "rm", "-rf", f"{DROP_INS.format('two')}/90-doctor.conf")


async def test_the_running_server_under_load_is_not_disturbed(host):
    """It runs, but would not start again: the line that allowed it has been taken away."""
    definition, unit = server("loaded", "netlink"), "autobot-mcp-bridge@loaded.service"
    await apply(host, definition)
    line = f"{DROP_INS.format('loaded')}/90-allow.conf"
    host.write(line, "[Service]\nRestrictAddressFamilies=AF_NETLINK\n")
    await check(host, "systemctl", "daemon-reload")
    token = host.token("loaded")
    await served(host, "loaded")
    before = properties(host.container, unit, "InvocationID")
    await check(host, "rm", line)
    await check(host, "systemctl", "daemon-reload")

    examining = asyncio.create_task(examine(host, "loaded"))
    said = []
    async with host.modern("loaded", token) as client:
        while not examining.done():
            said.append(await client.text("one"))
    status, found = await examining

    assert (status, found["code"]) == (1, "address_family_denied")
    assert any("runs at the time" in note for note in found["notes"])
    assert len(said) > 10
    assert {*said} == {"served"}
    assert properties(host.container, unit, "InvocationID") == before


async def test_a_masked_and_a_stopped_server_are_told_without_any_try(host):
    await apply(host, server("held", "healthy"))
    unit = "autobot-mcp-bridge@held.service"
    await check(host, "systemctl", "mask", unit)
    status, found = await examine(host, "held")
    assert (status, found["code"], found["tries"]) == (1, "masked", 0)
    assert f"systemctl unmask {unit}" in found["summary"]
    await check(host, "systemctl", "unmask", unit)

    status, found = await examine(host, "held")
    assert (status, found["code"]) == (0, None)


async def test_a_set_up_that_fails_is_named_by_its_step_and_by_what_is_missing(host):
    await check(host, "sh", "-ec", "mkdir -p /srv/gone; chmod 755 /srv/gone")
    await apply(host, server("cwd", "healthy", cwd="/srv/gone"))
    await check(host, "rmdir", "/srv/gone")

    status, found = await examine(host, "cwd")

    assert (status, found["code"]) == (1, "setup_failed")
    assert "CHDIR" in found["summary"]
    assert "/srv/gone" in found["summary"]
    assert traces(host) == ""


async def test_a_definition_that_apply_refuses_is_told_with_its_mistake(host):
    host.write_servers(server("refused", "healthy", cwd="/srv/never-there"))
    await run(host, "mcp-bridge", "apply")

    status, found = await examine(host, "refused")

    assert (status, found["code"], found["tries"]) == (1, "not_in_force", 0)
    assert "/srv/never-there" in found["summary"]


@pytest.mark.parametrize("signal", ["SIGTERM", "SIGINT", "SIGKILL"])
async def test_nothing_is_left_of_a_doctor_that_is_ended(host, signal):
    await apply(host, server("slow", "slow", "60"), server("healthy", "healthy"))
    words = ("systemd-run", "--unit=examining", "--collect", "--property=KillMode=process")
    await check(host, *words, "mcp-bridge", "doctor", "slow")
    await eventually(lambda: "doctor-" in traces(host), within=20)

    await check(host, "systemctl", "kill", f"--signal={signal}", "examining.service")

    if signal == "SIGKILL":
        await eventually(lambda: is_over(host), within=20)
        assert "doctor-" in traces(host)
        await examine(host, "healthy")
    await eventually(lambda: traces(host) == "", within=20)
    await eventually(lambda: is_over(host), within=20)


async def test_nothing_runs_relaxed_for_long_when_its_doctor_is_killed(host):
    # Passes over the end of its stdin, and is not in the way of a test that comes after.
    script = "import signal; signal.pause()"
    stays = {"name": "stays", "command": [PYTHON, "-c", script], "timeouts": {"start": "2s"}}
    await apply(host, stays, server("healthy", "healthy"))
    words = ("systemd-run", "--unit=examining", "--collect", "--property=KillMode=process")
    await check(host, *words, "mcp-bridge", "doctor", "stays")
    await eventually(lambda: relaxed(host), within=30)

    await check(host, "systemctl", "kill", "--signal=SIGKILL", "examining.service")
    await eventually(lambda: is_over(host), within=20)

    assert running(host) != ""
    await eventually(lambda: running(host) == "", within=90)
    await examine(host, "healthy")
    assert traces(host) == ""


def relaxed(host):
    """Whether a try without the sandbox has its process."""
    folder = "/run/systemd/system/autobot-mcp-bridge@doctor-*.service.d/zz-doctor.conf"
    found = host.container.run("sh", "-c", f"grep -l PrivateNetwork=no {folder}")
    return found.status == 0 and running(host) != ""


def running(host):
    words = ("--state=active", "--plain", "--no-legend", "autobot-mcp-bridge@doctor-*.service")
    return host.container.check("systemctl", "list-units", *words)


def is_over(host):
    return properties(host.container, "examining.service", "ActiveState")["ActiveState"] in {
        "inactive",
        "failed",
    }


async def test_strict_starts_it_in_its_own_sandbox_only(host):
    await apply(host, server("strict", "netlink"))

    status, found = await examine(host, "strict", "--strict")

    assert (status, found["code"], found["tries"]) == (1, "undecided", 1)
    assert "Address family not supported" in found["summary"]


async def test_the_deadline_bounds_the_search(host):
    await apply(host, server("slow", "slow", "60", start="30s"))

    status, found = await examine(host, "slow", "--deadline", "4s")

    assert (status, found["code"]) == (1, "undecided")
    assert traces(host) == ""


async def test_a_name_that_nobody_has_is_wrong_usage(host):
    await apply(host, server("healthy", "healthy"))

    done = await run(host, "mcp-bridge", "doctor", "nobody")

    assert done.status == 66
    assert "healthy" in done.err
