"""Five hundred configured servers: their units, a reboot, and nothing left once they are gone."""

import asyncio
import json
import time

import pytest

from support.containers import reaches
from support.product import echo
from support.waiting import eventually

pytestmark = pytest.mark.lab

SERVERS = 500
# What may differ before and after: the record of what is in force, logs, caches of programs.
_LIST = (
    "{ find / -xdev \\( -path /proc -o -path /sys -o -path /var/log -o -path /tmp -o -path /run/systemd"
    " -o -path /run/user -o -path /var/tmp -o -name __pycache__ -o -name journal -o -path /var/lib/systemd"
    " -o -path /opt -o -path /run/mcp-bridge/ended \\) -prune -o -printf '%p %y %m %u %g\\n' | sort;"
    " systemctl list-unit-files --no-legend; systemctl list-units --all --plain --no-legend"
    " 'autobot*' 'mcp*' | awk '{print $1}'; getent passwd; getent group; }"
)


def listing(product):
    lines = product.container.check("sh", "-c", _LIST, timeout=60.0).splitlines()
    # The server that stays has a user while it runs, and another uid after a reboot.
    return {line for line in lines if "/default/-/last " not in line and not line.startswith("mb-")}


def sockets(product):
    shown = product.container.check(
        "systemctl",
        "list-units",
        "--plain",
        "--no-legend",
        "--state=active",
        "autobot-mcp-bridge@*.socket",
    )
    return shown.splitlines()


async def apply(product, *words):
    """Apply by hand, for the time it takes; the path unit's own run finds nothing to do."""
    began = time.monotonic()
    text = await asyncio.to_thread(
        product.container.check, "mcp-bridge", "apply", *words, timeout=120.0
    )
    return text, time.monotonic() - began


async def test_hundreds_of_servers_cost_no_process_come_back_and_leave_nothing(
    product, record_property
):
    await product.serve(echo("last"))
    async with product.modern("last") as client:
        await client.text("pid")  # so that the directories of all servers are there
    before = listing(product)
    names = [f"s{number}" for number in range(SERVERS)]
    product.write_servers(echo("last"), *(echo(name) for name in names))

    text, seconds = await apply(product)
    record_property("apply_seconds", round(seconds, 1))
    assert f"{SERVERS + 1} ready" in text
    await product.applied("last", *names, within=60)
    assert len(sockets(product)) == SERVERS + 1
    pids = json.loads(product.cli("list", "--json"))["servers"]
    assert [row["name"] for row in pids if row["pid"] is not None] == ["last"]

    await asyncio.to_thread(product.container.reboot)
    await reaches(product.container, "mcp-bridge-proxy.service", ActiveState="active", within=60)
    await eventually(lambda: len(sockets(product)) == SERVERS + 1, within=60)
    async with product.modern("s250") as client:
        assert await client.text("echo", text="after the boot") == "after the boot"

    product.write_servers(echo("last"))
    _, seconds = await apply(product, "--purge")
    record_property("removal_seconds", round(seconds, 1))
    await product.applied("last", within=60)
    after = listing(product)
    assert sorted(after - before) == []
    assert sorted(before - after) == []
