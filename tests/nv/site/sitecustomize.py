"""Python runs this at every start when its folder is on PYTHONPATH; only test_removal.py puts it there."""

import os
import sys

NAME = os.environ.get("MCP_BRIDGE_TEST_REMOVE")
# pytest itself keeps the behaviour, and its own aiohttp; only our command line loses it.
if NAME and "autobot_mcp_bridge.cli.main" in sys.orig_argv:
    import removals

    removals.apply(NAME)
