"""The product in a virtual machine: calls through its proxy, and what it says of its host."""

import asyncio
import json

import pytest

from autobot_mcp_bridge.model.promises import Promise
from support.client import error_of
from support.installed import SERVERS
from support.product import echo
from support.waiting import eventually

pytestmark = pytest.mark.vm

# Each command of the product's starts Python there, for some seconds.
WITHIN = 120.0


def hungry(name, **limits):
    command = ["/usr/bin/python3", f"{SERVERS}/hungry.py"]
    return {"name": name, "command": command, "limits": limits}


@pytest.fixture
async def served(product_in_vm):
    product_in_vm.write_servers(echo("answers"), hungry("grows", memory="96M", tasks=40))
    await product_in_vm.applied("answers", "grows", within=WITHIN)
    return product_in_vm


@pytest.mark.requirement("S12")
async def test_a_server_ended_for_memory_is_told_as_such_and_its_neighbour_answers(served):
    async with served.session("grows") as client, served.session("answers") as neighbour:
        pid = await neighbour.text("pid")
        assert await client.text("eat", mib=10) == "10"
        limits = await served.samples(server="grows")

        error = error_of(await client.call("eat", {"mib": 200}))

        assert error["data"]["death"]["cause"] == "memory"
        assert await neighbour.text("pid") == pid
    assert limits["mcp_bridge_memory_max_bytes"] == 96 << 20
    assert limits["mcp_bridge_memory_current_bytes"] > 10 << 20
    await eventually(lambda: served.logs("MCP_INSTANCE=grows", "MCP_CAUSE=memory"))
    sample = 'mcp_bridge_crashes_total{cause="memory",server="grows"} 1.0'
    assert sample in await served.metrics()


@pytest.mark.requirement("AB-45")
async def test_what_is_kept_is_said_by_check(served):
    shown = await asyncio.to_thread(served.container.run, "mcp-bridge", "check", "--host")
    said = {line.split()[0]: line.split()[1] for line in shown.out.splitlines()[1:]}

    assert said == {name: "no" if name == Promise.IO_WEIGHT else "yes" for name in Promise}
    told = await asyncio.to_thread(served.container.run, "mcp-bridge", "check")
    assert "not kept on this host" not in told.err
    listed = json.loads(await asyncio.to_thread(served.cli, "list", "--json"))
    assert {row["name"] for row in listed["servers"]} == {"answers", "grows"}
