"""Starts one server that ignores everything, prints its pid, and waits to be killed."""

import asyncio
import sys
from pathlib import Path

from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.runtimes.base import Command
from autobot_mcp_bridge.runtimes.subprocess import SubprocessRuntime


async def main(state: str) -> None:
    runtime = SubprocessRuntime(Path(state))
    command = Command(["/bin/sh", "-c", "trap '' TERM; while :; do sleep 600; done"])
    process = await runtime.start(ServerSpec(name="lonely", command=("sh",)), command)
    print(process.pid, flush=True)
    await process.ended()


asyncio.run(main(sys.argv[1]))
