"""What this host's kernel keeps of a server's limits, and what the product says of it."""

import pytest

from support.containers import properties, reaches
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
