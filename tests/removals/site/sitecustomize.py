"""Python runs this at every start when its folder is on PYTHONPATH: test_removals.py puts it there."""

import os

if name := os.environ.get("MCP_BRIDGE_TEST_REMOVAL"):
    from removals.importing import install
    from removals.table import REMOVALS

    install(REMOVALS[name])
