"""What a cold start through the proxy costs beyond the server's own start."""

import statistics
import time

import pytest

from support.containers import reaches
from support.installed import SERVERS
from support.product import echo

pytestmark = pytest.mark.lab

ROUNDS = 7
UNIT = "autobot-mcp-bridge@cold.service"
# The bare server, in the same container: from fork to its initialize answer, in milliseconds.
_BARE = f"""
import json, subprocess, time
hello = {{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {{"protocolVersion": "2025-11-25",
         "capabilities": {{}}, "clientInfo": {{"name": "t", "version": "1"}}}}}}
began = time.perf_counter()
child = subprocess.Popen(["/usr/bin/python3", "{SERVERS}/echo.py"], stdin=-1, stdout=-1)
child.stdin.write(json.dumps(hello).encode() + b"\\n"); child.stdin.flush()
child.stdout.readline()
print((time.perf_counter() - began) * 1000)
child.kill(); child.wait()
"""


async def test_a_cold_start_answers_and_its_cost_is_recorded(product, record_property):
    await product.serve(echo("cold"))
    bare, cold = [], []
    async with product.modern("cold") as client:
        for _ in range(ROUNDS):
            bare.append(float(product.container.check("/usr/bin/python3", "-c", _BARE)))
            began = time.perf_counter()
            assert await client.text("echo", text="x") == "x"
            cold.append((time.perf_counter() - began) * 1000)
            product.container.check("systemctl", "kill", "-s", "KILL", "mcp-bridge@cold")
            await reaches(product.container, UNIT, ActiveState="failed")
            product.cli("reset", "cold")
    record_property("extra_ms", round(statistics.median(cold) - statistics.median(bare)))
