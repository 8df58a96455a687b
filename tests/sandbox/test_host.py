"""What this host's kernel keeps of a server's limits, and what the product says of it."""

import json

import pytest

from support.containers import properties, reaches
from support.installed import SERVERS
from support.product import echo
from support.waiting import eventually

pytestmark = pytest.mark.lab


def unit_of(name):
    return f"autobot-mcp-bridge@{name}.service"


def cgroup(product, unit, *names):
    """The first of these files of the unit's own cgroup, whatever tree it lies in."""
    group = properties(product.container, unit, "ControlGroup")["ControlGroup"]
    files = " ".join(f"/sys/fs/cgroup/*{group}/{name}" for name in names)
    return product.container.check("sh", "-c", f"cat {files} 2>/dev/null | head -1").strip()


async def test_weights_and_quotas_come_and_go_while_the_server_runs(product):
    unit = unit_of("weighed")
    await product.serve(echo("weighed", limits={"cpu": "50%", "cpu_weight": 50, "io_weight": 50}))
    async with product.session("weighed") as client:
        pid = await client.text("pid")
        # A weight of 100 is 1024 shares, and 100 of BFQ (systemd, cgroup-util.h).
        assert cgroup(product, unit, "cpu.shares") == "512"
        assert cgroup(product, unit, "blkio.weight", "blkio.bfq.weight") not in ("", "100")

        await product.serve(echo("weighed", limits={"cpu": "70%"}))

        await reaches(product.container, unit, CPUWeight="[not set]", IOWeight="[not set]")
        await eventually(lambda: cgroup(product, unit, "cpu.shares") == "1024")
        assert cgroup(product, unit, "cpu.cfs_quota_us") == "70000"
        assert await client.text("pid") == pid


@pytest.mark.requirement("AB-47")
async def test_the_proxy_tells_what_running_servers_use_and_may_use(product):
    limits = {"memory": "96M", "tasks": 40}
    hungry = {
        **echo("grows", limits=limits),
        "command": ["/usr/bin/python3", f"{SERVERS}/hungry.py"],
    }
    await product.serve(hungry, echo("sleeps"))
    async with product.session("grows") as client:
        await client.text("eat", mib=10)
        before = await product.samples(server="grows")
        await client.text("eat", mib=30)
        after = await product.samples(server="grows")

        assert after["mcp_bridge_memory_max_bytes"] == 96 << 20
        assert after["mcp_bridge_tasks_max"] == 40
        assert after["mcp_bridge_tasks"] >= 1
        grown = after["mcp_bridge_memory_current_bytes"] - before["mcp_bridge_memory_current_bytes"]
        assert 25 << 20 < grown < 50 << 20
        assert after["mcp_bridge_cpu_seconds_total"] > before["mcp_bridge_cpu_seconds_total"]
        assert after["mcp_bridge_uptime_seconds"] > 0
        assert (await product.samples(server="grows", event="oom_kill")) == {
            "mcp_bridge_memory_events_total": 0
        }
        top = json.loads(product.cli("top", "--every=0.2s", "--json"))
        assert [(row["instance"], row["cpu"] is None) for row in top] == [("grows", False)]
        assert top[0]["memory"] > 40 << 20
    sleeping = await product.samples(server="sleeps")
    assert not [
        name for name in sleeping if "memory" in name or "tasks" in name or "uptime" in name
    ]
    assert "mcp_bridge_cgroup_read_errors_total 0.0" in await product.metrics()


@pytest.mark.requirement("AB-47")
async def test_a_memory_limit_of_somebody_else_s_is_told_as_out_of_band(product):
    unit, name = unit_of("banded"), "mcp_bridge_limits_out_of_band"
    await product.serve(echo("banded", limits={"memory": "96M"}))
    async with product.session("banded") as client:
        await client.text("pid")
        assert (await product.samples(server="banded"))[name] == 0

        product.container.check("systemctl", "set-property", "--runtime", unit, "MemoryMax=128M")
        assert (await product.samples(server="banded"))[name] == 1

        product.container.check("systemctl", "set-property", "--runtime", unit, "MemoryMax=96M")
        assert (await product.samples(server="banded"))[name] == 0
    product.container.check("rm", "-r", f"/run/systemd/system.control/{unit}.d")


async def test_a_unit_in_a_slice_of_the_administrator_s_is_measured_too(product):
    unit = unit_of("moved")
    drop_in = f"/etc/systemd/system/{unit}.d/90-slice.conf"
    await product.serve(echo("moved", limits={"memory": "96M"}))
    product.container.write(drop_in, "[Service]\nSlice=acme.slice\n")
    try:
        product.container.check("systemctl", "daemon-reload")
        async with product.session("moved") as client:
            await client.text("pid")
            found = await product.samples(server="moved")
            assert found["mcp_bridge_memory_max_bytes"] == 96 << 20
    finally:
        product.container.check("rm", drop_in)
        product.container.check("systemctl", "daemon-reload")


async def test_an_administrator_s_limit_outlives_a_change_of_ours(product):
    unit = unit_of("theirs")
    drop_in = f"/etc/systemd/system/{unit}.d/90-more.conf"
    await product.serve(echo("theirs", limits={"memory": "256M", "tasks": 40}))
    product.container.write(drop_in, "[Service]\nMemoryMax=300M\n")
    try:
        product.container.check("systemctl", "daemon-reload")
        async with product.session("theirs") as client:
            await client.text("pid")
            assert cgroup(product, unit, "memory.limit_in_bytes") == str(300 << 20)

            await product.serve(echo("theirs", limits={"memory": "128M", "tasks": 50}))

            await reaches(product.container, unit, TasksMax="50", MemoryMax=str(300 << 20))
            await eventually(lambda: cgroup(product, unit, "pids.max") == "50")
            assert cgroup(product, unit, "memory.limit_in_bytes") == str(300 << 20)
    finally:
        product.container.check("rm", drop_in)
        product.container.check("systemctl", "daemon-reload")
