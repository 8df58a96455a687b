"""What a server says that no message can carry costs that line alone; bounds count at all times."""

import asyncio

from support.bridge import Bridge
from support.client import code_of
from support.fakes import echo

UPDATED = '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":[1]}}'


async def test_a_notification_that_cannot_be_passed_on_is_dropped_alone():
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        pid = await session.text("pid")
        await session.text("say", line=UPDATED)
        assert await session.text("pid") == pid
        dropped = await bridge.metric("mcp_bridge_dropped_lines_total", server="files")
        assert dropped >= 1


async def test_calls_above_the_limit_are_refused_by_a_running_server_too():
    limits = {"limits": {"calls_per_server": 2}}
    async with Bridge([echo("files")], host=limits) as bridge, bridge.modern("files") as client:
        await client.text("pid")
        waiting = [asyncio.create_task(client.call("wait", {"tag": n})) for n in range(4)]
        done, pending = await asyncio.wait(waiting, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        assert code_of(next(iter(done)).result()) == "queue_full"
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
