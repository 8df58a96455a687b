"""What a child process is given, and what it is kept from."""

import asyncio
import os
import resource
import sys
from pathlib import Path

import pytest

from autobot_mcp_bridge.runtimes.base import Command, StartError
from autobot_mcp_bridge.runtimes.subprocess import SubprocessRuntime
from support import proc
from support.fakes import python
from support.waiting import eventually

from .conftest import Child, spec


@pytest.mark.requirement("NV-03")
async def test_the_environment_is_exactly_the_documented_list(state, child, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_HOST", "1")
    home = state / "acme" / "web" / "files"

    told = await child(
        "tell",
        tenant="acme",
        project="web",
        name="files",
        env={"LOG_LEVEL": "info", "TMPDIR": "/var/tmp"},
    )

    assert (await told.line())["environ"] == {
        "PATH": f"{Path(python()).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TMPDIR": "/var/tmp",
        "PYTHONUNBUFFERED": "1",
        "MCP_INSTANCE": "acme.web.files",
        "MCP_INVOCATION": told.process.invocation,
        "LOG_LEVEL": "info",
    }
    assert (home / "tmp").is_dir()


@pytest.mark.requirement("NV-02", "NV-04", "NV-05")
async def test_a_child_gets_its_directory_its_limits_and_nothing_else(state, child):
    inherited = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(inherited, True)
    try:
        told = await (await child("tell", limits={"open_files": 200})).line()
    finally:
        os.close(inherited)

    assert told["cwd"] == str(state / "default" / "-" / "child")
    assert told["mode"] == 0o700
    assert told["umask"] == 0o077
    assert told["descriptors"] == [0, 1, 2]
    assert told["files"] == [200, 200]
    assert told["core"] == [0, 0]
    assert told["no_new_privs"] == "1"
    assert told["session"] == told["group"] != os.getpgrp()


@pytest.mark.requirement("NV-02")
async def test_words_reach_the_server_as_they_are(runtime):
    words = ["$HOME", "a b", "", ";exit 1", "ä", "*"]
    script = "import json,sys; print(json.dumps(sys.argv[1:]), flush=True); sys.stdin.read()"
    echo = Child(await runtime.start(spec(), Command([python(), "-I", "-S", "-c", script, *words])))

    assert await echo.line() == words
    await echo.stop()
    echo.close()


async def test_no_limit_is_set_that_ends_a_healthy_server(child):
    told = await (await child("tell")).line()

    ours = [resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU)]
    infinite = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    assert told["unlimited"] == [limit == infinite for limit in ours]
    assert told["processes"] == list(resource.getrlimit(resource.RLIMIT_NPROC))


async def test_cwd_changes_the_working_directory_only(state, child):
    told = await (await child("tell", cwd="/")).line()

    assert told["cwd"] == "/"
    assert told["environ"]["HOME"] == str(state / "default" / "-" / "child")


async def test_a_working_directory_that_does_not_exist_is_named(child):
    with pytest.raises(StartError, match="/nowhere: No such file"):
        await child("tell", cwd="/nowhere")


async def test_an_environment_larger_than_a_socket_buffer_arrives(child):
    big = "x" * 100_000
    told = await child("tell", env={f"BIG{n}": big for n in range(8)})

    environment = (await told.line())["environ"]

    assert all(environment[f"BIG{n}"] == big for n in range(8))


async def test_a_script_without_its_interpreter_says_so(state, runtime):
    script = state.parent / "script"
    script.write_text("#!/nowhere/python\n", encoding="utf-8")
    script.chmod(0o755)

    with pytest.raises(StartError, match="interpreter in its first line"):
        await runtime.start(spec(), Command([str(script)]))


async def test_thirty_starts_and_stops_leak_no_descriptor_and_no_process(child):
    await (await child("echo")).stop()
    before = proc.descriptors(os.getpid()), proc.children(os.getpid())
    for number in range(30):
        each = await child("leave", 0) if number % 2 else await child("echo")
        await each.stop(5)
        each.close()

    assert proc.descriptors(os.getpid()) <= before[0]
    assert proc.children(os.getpid()) == before[1]


async def test_failed_starts_leak_nothing_either(runtime):
    with pytest.raises(StartError):
        await runtime.start(spec(), Command(["/nowhere"]))
    before = proc.descriptors(os.getpid())
    for _ in range(5):
        with pytest.raises(StartError):
            await runtime.start(spec(), Command(["/nowhere"]))

    assert proc.descriptors(os.getpid()) == before
    assert proc.children(os.getpid()) == []


@pytest.mark.root
async def test_as_root_each_server_has_an_unprivileged_uid_of_its_own_for_good(need, child):
    need("root")
    first = [await (await child("tell", name=f"s{n}")).line() for n in range(3)]
    again = await (await child("tell", name="s0")).line()

    uids = [told["uid"] for told in first]
    assert len(set(uids)) == 3
    assert all(61184 <= uid <= 65519 for uid in uids)
    assert [told["gid"] for told in first] == uids
    assert [told["groups"] for told in first] == [[], [], []]
    assert again["uid"] == uids[0]


@pytest.mark.root
async def test_as_root_a_server_cannot_read_its_neighbours_directory(need, state, child):
    need("root")
    await (await child("tell", name="one")).line()
    (state / "default" / "-" / "one" / "secret").write_text("x", encoding="utf-8")
    script = "import sys; open(sys.argv[1])"
    target = str(state / "default" / "-" / "one" / "secret")
    runtime = SubprocessRuntime(state)
    try:
        other = Child(
            await runtime.start(
                spec("other"), Command([python(), "-I", "-S", "-c", script, target])
            )
        )
        death = await other.ended()
        other.close()
    finally:
        await runtime.close()

    assert death.status == 1
    assert "PermissionError" in death.last_words[-1]


@pytest.mark.root
async def test_a_directory_with_files_of_someone_else_is_refused_with_the_command_that_helps(
    need, state, child
):
    need("root")
    home = state / "default" / "-" / "child"
    home.mkdir(parents=True)
    (home / "file").touch()

    with pytest.raises(StartError, match=rf"chown -R \d+:\d+ {home}"):
        await child("echo")
    assert (home / "file").stat().st_uid == 0

    (home / "file").unlink()
    assert (await (await child("tell")).line())["uid"] == home.stat().st_uid


@pytest.mark.root
async def test_a_program_that_the_uid_cannot_reach_is_named_with_the_closed_directory(
    need, state, runtime
):
    need("root")
    closed = state.parent / "closed"
    closed.mkdir(mode=0o700)
    program = closed / "program"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)

    with pytest.raises(StartError, match=rf"chmod o\+x {closed}"):
        await runtime.start(spec(), Command([str(program)]))


@pytest.mark.root
async def test_run_as_is_kept_as_root_and_never_means_root(need, child):
    need("root")
    told = await (await child("tell", run_as="nobody")).line()

    assert told["uid"] == 65534
    with pytest.raises(ValueError, match="any user but root"):
        await child("tell", name="other", run_as="root")


async def test_a_server_dies_with_the_proxy(state, need):
    """The proxy is killed with SIGKILL, so nothing but the kernel can end the server."""
    script = Path(__file__).with_name("lonely_proxy.py")
    proxy = await asyncio.create_subprocess_exec(
        sys.executable,
        str(script),
        str(state),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    assert proxy.stdout is not None
    async with asyncio.timeout(60):
        server = int(await proxy.stdout.readline())
    assert proc.alive(server)

    proxy.kill()
    async with asyncio.timeout(20):
        await proxy.wait()

    await eventually(lambda: not proc.alive(server), what="the server's end")
