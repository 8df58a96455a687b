"""What an administrator types, and what then happens to clients that keep calling."""

import asyncio
import json
import os
import time

import pytest

from support.client import answer_to, code_of, error_of
from support.containers import properties, reaches
from support.installed import SERVERS
from support.product import echo
from support.waiting import PATIENCE, eventually

pytestmark = pytest.mark.lab

TARGET = "autobot-mcp-bridge.target"
# Seconds for which a stopped server is called on; `make show-units` asks for 30.
STOPPED_FOR = float(os.environ.get("MCP_BRIDGE_STOPPED_FOR", "5"))
NAME_WITHIN = 2.0  # seconds until a wrong name is told


@pytest.fixture
async def files(product):
    """A served instance, a token of it, and a client that calls it."""
    await product.serve(echo("files"), echo("other", tenant="acme"))
    token = product.token("files")
    async with product.modern("files", token) as client:
        yield client


async def run(product, *words):
    return await asyncio.to_thread(product.container.check, *words)


async def outcome(client):
    """The text of an answered call, or the stable word of an error."""
    answer = await client.call("pid", within=20.0)
    return code_of(answer) if "error" in answer else answer["result"]["content"][0]["text"]


async def test_a_stop_holds_while_clients_keep_calling_and_a_start_ends_it(product, files):
    await files.text("pid")
    await run(product, "systemctl", "stop", "mcp-bridge@files")
    began, words = time.monotonic(), set()
    while time.monotonic() - began < STOPPED_FOR:
        response = await files.send(files.call_of("pid", {}, 1))
        assert response.status == 503
        assert response.header("Retry-After")
        words.add(code_of(answer_to(response, 1)))
    assert words == {"stopped_by_operator"}
    unit = properties(product.container, "autobot-mcp-bridge@files.service", "ActiveState")
    assert unit == {"ActiveState": "inactive"}

    await run(product, "systemctl", "start", "mcp-bridge@files")
    await eventually(lambda: answers(files), within=10)
    said = set(product.logs("MCP_INSTANCE=files", "SYSLOG_IDENTIFIER=mcp-bridge-proxy"))
    hand = {"files: its unit was stopped by the operator", "files: its unit was started by hand"}
    assert hand <= said


async def test_what_apply_refuses_is_told_by_check_and_by_list(product, files):
    away = {"read": ["/srv/no-such-folder"]}
    product.write_servers(echo("files"), echo("other", tenant="acme"), echo("new", paths=away))
    await reaches(product.container, "mcp-bridge-apply.service", ExecMainStatus="78")
    checked = await asyncio.to_thread(product.container.run, "mcp-bridge", "check")
    assert (checked.status, "/srv/no-such-folder" in checked.out) == (65, True)
    reloaded = await asyncio.to_thread(product.container.run, "mcp-bridge", "reload")
    assert (reloaded.status, "/srv/no-such-folder" in reloaded.err) == (78, True)
    listed = json.loads(await asyncio.to_thread(product.cli, "list", "--json"))
    (new,) = (row for row in listed["servers"] if row["name"] == "new")
    assert (new["state"], "/srv/no-such-folder" in new["refused"]) == ("refused", True)

    product.write_servers(echo("files"), echo("other", tenant="acme", warm="yes"))
    await reaches(product.container, "mcp-bridge-apply.service", ExecMainStatus="65")
    reloaded = await asyncio.to_thread(product.container.run, "mcp-bridge", "reload")
    assert reloaded.status == 65
    listed = await asyncio.to_thread(product.container.run, "mcp-bridge", "list", "--json")
    assert listed.status == 65
    assert json.loads(listed.out)["problems"][0]["path"] == "$.servers[1].warm"

    await product.serve(echo("files"), echo("other", tenant="acme"))
    checked = await asyncio.to_thread(product.container.run, "mcp-bridge", "check")
    assert (checked.status, checked.err) == (0, "")
    listed = json.loads(await asyncio.to_thread(product.cli, "list", "--json"))
    assert (listed["refused"], listed["problems"]) == ([], [])
    assert [row["refused"] for row in listed["servers"]] == [None, None]


async def test_a_program_that_this_host_lacks_is_told_by_check(product):
    lacks = {"name": "lacks", "command": ["/usr/local/bin/no-such-program"]}
    product.write_servers(lacks)
    await product.applied("lacks", state="install_failed")
    checked = await asyncio.to_thread(product.container.run, "mcp-bridge", "check")
    assert checked.status == 65
    assert checked.out == "lacks: /usr/local/bin/no-such-program: no such program\n"


async def test_a_removed_server_that_had_failed_leaves_no_failed_unit(product, files):
    await files.text("pid")
    unit = "autobot-mcp-bridge@files.service"
    await run(product, "systemctl", "kill", "--signal=SEGV", unit)
    await reaches(product.container, unit, ActiveState="failed")
    await product.serve(echo("other", tenant="acme"))
    words = (
        "systemctl",
        "list-units",
        "--failed",
        "--plain",
        "--no-legend",
        "autobot-mcp-bridge@*",
    )
    assert await run(product, *words) == ""


async def answers(client):
    """Whether a call is answered; else what it got is printed, for a test that waits in vain."""
    found = await outcome(client)
    print(found)
    return found.isdecimal()


async def test_a_stop_holds_over_an_apply(product, files):
    await run(product, "systemctl", "stop", "mcp-bridge@files")
    await eventually(lambda: says(files, "stopped_by_operator"))
    await product.serve(echo("files"), echo("new"))
    assert await outcome(files) == "stopped_by_operator"
    await run(product, "systemctl", "start", "mcp-bridge@files")
    await eventually(lambda: answers(files), within=10)


async def says(client, word):
    return await outcome(client) == word


async def test_a_restart_makes_one_new_process_and_the_next_call_is_answered(product, files):
    before = await outcome(files)
    invocation = properties(product.container, "autobot-mcp-bridge@files.service", "InvocationID")
    await run(product, "systemctl", "restart", "mcp-bridge@files")
    after = await outcome(files)
    assert after.isdecimal()
    now = properties(product.container, "autobot-mcp-bridge@files.service", "InvocationID")
    assert now != invocation
    assert await outcome(files) == after
    assert before


async def test_a_restart_of_all_at_once_is_no_crash_of_any(product):
    names = [f"many{number}" for number in range(8)]
    await product.serve(*map(echo, names))
    tokens = {name: product.token(name) for name in names}

    async def touch(name):
        async with product.session(name, tokens[name]) as client:
            await client.text("pid")

    await asyncio.gather(*map(touch, names))
    for how in (["restart", "autobot-mcp-bridge@many*.service"], ["restart", TARGET]):
        await run(product, "systemctl", *how)
        await asyncio.gather(*map(touch, names))

    listed = json.loads(await run(product, "mcp-bridge", "list", "--json"))["servers"]
    assert {row["name"]: row["crashes"] for row in listed} == dict.fromkeys(names, 0)


async def test_status_and_the_journal_know_the_server_by_its_names(product, files):
    await files.text("warn", text="a line of the server")
    pid = int(json.loads(await run(product, "mcp-bridge", "status", "files", "--json"))["pid"])
    service = "autobot-mcp-bridge@files.service"
    assert properties(product.container, service, "MainPID") == {"MainPID": str(pid)}
    assert "active (running)" in await run(product, "systemctl", "status", "mcp-bridge@files")
    for match in ("MCP_INSTANCE=files", "SYSLOG_IDENTIFIER=mcp-bridge@files"):
        assert "a line of the server" in product.logs(match)
    assert "a line of the server" in await run(product, "mcp-bridge", "logs", "files")


async def test_the_command_line_calls_a_tool_as_a_client_does(product, files):
    await run(product, "mcp-bridge", "token", "new", "files", "--write-header")
    await run(product, "mcp-bridge", "reload")
    said = await run(product, "mcp-bridge", "call", "files", "echo", '{"text": "hello"}')
    assert said == "hello\n"


async def test_disable_and_mask_outlive_apply_and_reboot(product, files):
    await run(product, "systemctl", "disable", "autobot-mcp-bridge@files.socket")
    await run(product, "systemctl", "mask", "autobot-mcp-bridge@acme.other.service")
    token = product.token("acme.other")
    await product.serve(echo("files"), echo("other", tenant="acme"), echo("kept"))
    await asyncio.to_thread(product.container.reboot)
    await reaches(product.container, "mcp-bridge-proxy.service", ActiveState="active", within=20)

    socket = "autobot-mcp-bridge@files.socket"
    state = properties(product.container, socket, "ActiveState", "UnitFileState")
    assert state == {"ActiveState": "inactive", "UnitFileState": "disabled"}
    async with product.modern("acme.other", token) as masked:
        assert await outcome(masked) == "masked"
    shown = json.loads(await run(product, "mcp-bridge", "list", "--json"))["servers"]
    states = {row["name"]: row["state"] for row in shown}
    assert (states["acme.other"], states["files"]) == ("masked", "stopped")
    async with product.modern("kept") as kept:
        assert await answers(kept)
    assert await outcome(files) == "stopped_by_operator"

    await run(product, "systemctl", "unmask", "autobot-mcp-bridge@acme.other.service")
    await run(product, "systemctl", "enable", "--now", socket)
    await eventually(lambda: answers(files), within=10)
    async with product.modern("acme.other", token) as unmasked:
        await eventually(lambda: answers(unmasked), within=10)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("mcp-bridge", "status", "nobody"), "mcp-bridge list"),
        (("mcp-bridge", "stop", "nobody"), "no such server"),
        (("mcp-bridge", "token", "new", "nobody"), "nobody"),
        (("systemctl", "start", "mcp-bridge@nobody"), "mcp-bridge@nobody"),
    ],
)
async def test_a_name_that_nobody_has_fails_at_once_and_says_why(product, files, words, told):
    began = time.monotonic()
    done = await asyncio.to_thread(product.container.run, *words)
    assert time.monotonic() - began < NAME_WITHIN * PATIENCE
    assert done.status != 0
    assert told in f"{done.out}{done.err}"


DEEDS = {
    "exit code": ("crash", {"status": 7}, "exit"),
    "signal": ("kill", {"signal": "SIGKILL"}, "signal"),
    "seccomp": ("kill", {"signal": "SIGSYS"}, "seccomp"),
    "closed stdout": ("close_stdout", {}, "stdout_closed"),
}
FAILING = {
    "set-up step": ({"paths": {"read": ["/srv/gone"]}}, None, "setup"),
    "bad exec": ({}, ["/usr/bin/nothing-here"], "exec"),
    "start timeout": ({"timeouts": {"start": "1s"}}, ["/bin/sleep", "1000"], "start_timeout"),
    "OOM": ({"limits": {"memory": "32M"}}, None, "memory"),
}
EATER = ["/usr/bin/python3", "-c", "import sys; sys.stdin.readline(); x = bytearray(1 << 29)"]


@pytest.mark.parametrize("deed", [*DEEDS, *FAILING])
async def test_a_death_has_one_cause_in_the_error_the_journal_and_the_metrics(product, deed):
    name = "dies." + deed.split()[0].lower().replace("-", "")
    tenant, own = name.split(".")
    if deed in DEEDS:
        tool, arguments, cause = DEEDS[deed]
        await product.serve(echo(own, tenant=tenant))
    else:
        tool, arguments = "pid", {}
        keys, command, cause = FAILING[deed]
        if deed == "set-up step":
            product.container.check("mkdir", "-p", "/srv/gone")
        server = echo(own, tenant=tenant, **keys)
        server["command"] = command or (EATER if deed == "OOM" else server["command"])
        if deed == "bad exec":
            product.container.check("sh", "-c", "echo '#!/no/interpreter' > /usr/bin/nothing-here")
            product.container.check("chmod", "755", "/usr/bin/nothing-here")
        await product.serve(server)
        if deed == "set-up step":
            product.container.check("rmdir", "/srv/gone")
    async with product.modern(name) as client:
        error = error_of(await client.call(tool, arguments, within=20.0))
    assert error["data"]["death"]["cause"] == cause
    await eventually(lambda: journal(product, name, cause))
    sample = f'mcp_bridge_crashes_total{{cause="{cause}",server="{name}"}} 1.0'
    assert sample in await product.metrics()


def journal(product, name, cause):
    return bool(product.logs(f"MCP_INSTANCE={name}", f"MCP_CAUSE={cause}"))


async def test_a_server_is_added_called_and_removed_to_the_last_by_the_command_line_alone(product):
    await product.serve()
    command = ("--", "/usr/bin/python3", f"{SERVERS}/echo.py")
    await run(product, "mcp-bridge", "add", "solo", *command)
    await product.applied("solo")
    assert (
        await run(product, "mcp-bridge", "call", "solo", "echo", '{"text": "hello"}') == "hello\n"
    )
    await run(product, "rm", "/etc/mcp-bridge/servers.json")

    await run(product, "mcp-bridge", "remove", "solo", "--purge")

    await product.applied()
    for place in ("/var/lib/private/mcp-bridge/default/-/solo", "/run/mcp-bridge/solo.sock"):
        assert product.container.run("test", "-e", place).status != 0


OWN = ("/var/lib/private/mcp-bridge/default/-/own", "/var/cache/private/mcp-bridge/default/-/own")


def is_there(product, *places):
    return [product.container.run("test", "-e", place).status == 0 for place in places]


async def apply(product, *servers, words=()):
    """By hand: `in force` does not tell a disabled server from one that is served."""
    product.write_servers(*servers)
    await run(product, "mcp-bridge", "apply", *words)


async def test_a_disabled_server_keeps_its_tokens_and_files_until_it_is_removed(product):
    await product.serve(echo("own"))
    token = product.token("own")
    async with product.modern("own", token) as client:
        await client.text("pid")
        await apply(product, echo("own", enabled=False), words=["--purge"])
        await eventually(lambda: is_disabled(client), within=10)
        assert is_there(product, *OWN) == [True, True]
        await apply(product, echo("own"))
        await eventually(lambda: answers(client), within=10)

        await apply(product, echo("own", enabled=False))
        await run(product, "mcp-bridge", "remove", "own", "--purge")
        assert is_there(product, *OWN) == [False, False]
        await apply(product, echo("own"))
        async with product.modern("own") as other:
            await eventually(lambda: answers(other), within=10)
        assert (await client.send(client.call_of("pid", {}, 1))).status == 401


async def is_disabled(client):
    return await outcome(client) == "disabled"


async def test_a_server_that_has_crashed_can_be_purged(product):
    await product.serve(echo("own"))
    async with product.modern("own") as client:
        assert code_of(await client.call("crash")) == "server_crashed"
    unit = "autobot-mcp-bridge@own.service"
    await reaches(product.container, unit, ActiveState="failed")
    assert is_there(product, *OWN) == [True, True]

    await run(product, "mcp-bridge", "remove", "own", "--purge")

    assert is_there(product, *OWN) == [False, False]
