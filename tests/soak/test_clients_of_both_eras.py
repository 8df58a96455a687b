"""100 clients of both eras on one URL for minutes: nothing crosses, nothing is left behind.

The baseline is taken after the same load of WARM_UP seconds, when every client has gone and each
server's process has ended; so is what is compared with it. Streams that are kept for clients that
come back count no more by then (limits.resume is short).
"""

import os
import random

import pytest

from support.bridge import Bridge
from support.fakes import echo, entry
from support.soak import Kind, Soak

SECONDS = float(os.environ.get("MCP_BRIDGE_SOAK", "300"))
QUICK = {"idle": "5s", "stop": "2s"}
# Clients keep connections for as long as it lasts.
LIMITS = {"resume": "5s", "write_timeout": "4s", "connection_idle": "1h", "isolated_per_token": 64}
BOTH = frozenset({"handshake", "modern"})
KINDS = {
    "modern": (entry("modern", "files", timeouts=QUICK), Kind(BOTH, sessions=20)),
    "handshake": (echo("files", timeouts=QUICK), Kind(frozenset(), sessions=20)),
    "isolated": (
        echo("files", timeouts=QUICK, sessions="isolated"),
        Kind(BOTH, sessions=10, isolated=True),
    ),
}


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_crosses_and_nothing_stays_while_servers_are_killed_and_clients_vanish(kind):
    seed = int(os.environ.get("SOAK_SEED") or random.SystemRandom().randrange(2**32))
    print(f"SOAK_SEED={seed} repeats these choices")
    server, how = KINDS[kind]
    host = {"limits": LIMITS, "log": {"access": "errors"}}
    async with Bridge([server], host=host) as bridge:
        summary = await Soak(bridge, "files", how, seed).run(SECONDS, print)
    print(summary)
    assert summary["ok"], summary
