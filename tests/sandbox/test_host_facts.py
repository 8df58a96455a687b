"""What this host keeps of the sandbox: tried, told everywhere, and what servers really meet."""

import asyncio

import pytest

from autobot_mcp_bridge.model.promises import Promise
from sandbox.probing import DROP_IN, PROBE, kept, probed
from support.containers import entries
from support.installed import instance, spec_of
from support.product import echo
from support.waiting import eventually

pytestmark = pytest.mark.lab

# With cgroup v1 and the disks of a container; there is no swap that could be used.
NEVER = {Promise.MEMORY_HIGH, Promise.IO_WEIGHT}
ALWAYS = {Promise.SWAP}
EATER = "b = bytearray(200 << 20); b[::4096] = b'x' * len(b[::4096]); print('had', flush=True)"
FORKER = """
import os
inside, outside = os.pipe()
number = 0
try:
    while number < 32:
        if os.fork() == 0:
            os.close(outside); os.read(inside, 1); os._exit(0)
        number += 1
except OSError:
    pass
print('had' if number == 32 else 'refused', flush=True)
"""
SENDER = """
import socket
own = socket.socket(type=socket.SOCK_DGRAM)
own.bind(('127.0.0.1', 0))
try:
    own.sendto(b'x', own.getsockname())
    print('had', flush=True)
except PermissionError:
    print('refused', flush=True)
"""


def test_every_promise_is_tried_and_what_is_taken_away_is_found_missing(
    installed, without, record_property
):
    here = probed(installed)
    without(installed)
    bare = probed(installed)

    assert {*here} == {*bare} == {*Promise}
    assert kept(here) == {*Promise} - NEVER, here
    assert kept(bare) == ALWAYS, bare
    assert all(found["why"] for found in bare.values() if not found["kept"])
    record_property("promises_tried", len(kept(here) - ALWAYS))


# The promise, what a server tries, its definition's settings, and the drop-in with which it may.
MEETS = {
    "memory": (EATER, {"limits": {"memory": "64M"}}, "MemoryMax=infinity"),
    "tasks": (FORKER, {"limits": {"tasks": 9}}, "TasksMax=infinity"),
    "addresses": (SENDER, {"profile": "npx"}, "IPAddressDeny="),
}


@pytest.mark.parametrize("promise", MEETS)
def test_what_is_said_of_a_host_is_what_a_server_meets(installed, promise):
    program, settings, freely = MEETS[promise]
    # The name is the profile's; what it is, is not.
    installed.write("/opt/meets/npx", f"#!/usr/bin/python3 -IS\n{program}", mode=0o755)

    def had(extra):
        with instance(installed, spec_of("meets", "/opt/meets/npx", **settings), extra) as one:
            with one.start() as handed:
                assert handed.rest() == b""
                return handed.read(within=20).decode() == "had\n"

    said = probed(installed)[promise]["kept"]
    assert had("") is not said
    assert had(f"[Service]\n{freely}\n")


def promised(text):
    """The metric's samples: promise to 0 or 1."""
    lines = [line for line in text.splitlines() if line.startswith("mcp_bridge_host_enforces{")]
    return {line.split('"')[1]: float(line.split()[-1]) for line in lines}


@pytest.mark.requirement("AB-45")
async def test_what_is_not_kept_is_said_by_check_in_the_log_and_in_the_metric(product, without):
    container = product.container
    await product.serve(echo("asks", limits={"io_weight": 50}), echo("plain"))
    assert {
        Promise(name) for name, value in promised(await product.metrics()).items() if value
    } == ({*Promise} - NEVER)
    told = await asyncio.to_thread(container.run, "mcp-bridge", "check")
    assert "limits.io_weight of asks" in told.err
    assert "limits.memory" not in told.err

    without(container, "[Service]\nMemoryMax=infinity\nSystemCallFilter=\n")
    await asyncio.to_thread(container.check, "mcp-bridge", "apply", timeout=60.0)

    told = await asyncio.to_thread(container.run, "mcp-bridge", "check")
    assert "a server that uses more than limits.memory is ended" in told.err
    assert "limits.memory of asks, plain" in told.err
    shown = container.check("mcp-bridge", "check", "--host")
    assert [line.split()[:2] for line in shown.splitlines()[1:]][:2] == [
        *(["memory", "no"], ["memory_high", "no"])
    ]

    async def metric_follows():
        found = promised(await product.metrics())
        return (found["memory"], found["syscalls"], found["tasks"]) == (0, 0, 1)

    await eventually(metric_follows)
    said = entries(container, "MCP_ISOLATION=memory", "-t", "mcp-bridge-proxy")
    assert "limits.memory of asks, plain" in said[-1]["MESSAGE"]
    assert entries(container, "MCP_ISOLATION=syscalls", "-t", "mcp-bridge-proxy")

    container.check("rm", DROP_IN)
    container.check("systemctl", "daemon-reload")
    await asyncio.to_thread(container.check, "mcp-bridge", "apply", timeout=60.0)
    assert "limits.memory" not in container.run("mcp-bridge", "check").err


async def test_a_host_that_cannot_set_up_the_sandbox_keeps_nothing_and_says_why(product, without):
    container = product.container
    await product.serve(echo("any"))
    without(container, "[Service]\nExecStart=\nExecStart=/nowhere\n")
    await asyncio.to_thread(container.check, "mcp-bridge", "apply", timeout=60.0)
    shown = container.check("mcp-bridge", "check", "--host").splitlines()[1:]

    assert {line.split()[1] for line in shown} == {"no"}
    assert all("the sandbox cannot be tried" in line for line in shown)
    assert "limits.memory of any" in container.run("mcp-bridge", "check").err

    container.check("rm", DROP_IN)
    container.check("systemctl", "daemon-reload")
    await asyncio.to_thread(container.check, "mcp-bridge", "apply", timeout=60.0)


async def test_facts_are_found_out_anew_at_a_boot_and_not_at_each_change(product):
    container = product.container
    await product.serve(echo("any"))

    def tries():
        return len(entries(container, "-u", PROBE, "--boot", "--grep=Finished"))

    before = tries()
    await product.serve(echo("any"), echo("more"))
    assert tries() == before

    await asyncio.to_thread(container.reboot)
    await eventually(
        lambda: container.run("test", "-e", "/run/mcp-bridge/enforced.json").status == 0
    )
    assert tries() == 1
