"""What an end of the proxy means for the sessions that the next one may find."""

import asyncio
import json

import pytest

from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.source import Files
from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.policy.principals import Principal
from autobot_mcp_bridge.proxy.bridge import Bridge
from autobot_mcp_bridge.runtimes.subprocess import SubprocessRuntime
from autobot_mcp_bridge.supervision.journal import Journal, Storeless
from autobot_mcp_bridge.units.packages.commands import Packages

PRINCIPAL = Principal("d" * 64, "files")


@pytest.fixture
def places(tmp_path):
    made = Places(tmp_path / "config", tmp_path / "state", tmp_path / "run")
    made.config_dir.mkdir(mode=0o700)
    server = {"name": "files", "command": ["/bin/cat"], "tokens_sha256": [PRINCIPAL.digest]}
    made.servers_json.write_text(json.dumps({"version": 1, "servers": [server]}), encoding="ascii")
    return made


@pytest.mark.parametrize("leaves", [True, False])
async def test_sessions_stay_for_the_next_proxy_only_if_it_is_left_to(places, leaves):
    memory = Journal(Storeless(), {})
    packages = Packages(places.packages, environ={}, progress=print)
    runtime = SubprocessRuntime(places.state_dir)
    async with Bridge(places, HostSettings(), runtime, packages, memory=memory) as bridge:
        (served,) = bridge.routes.values()
        session = served.conversations.sessions.open(PRINCIPAL, "2025-11-25", print)
        if leaves:
            await bridge.leave()
    await packages.close()
    kept = memory.items("session", "files")
    memory.close()
    assert list(kept) == ([session.id] if leaves else [])


async def test_one_reload_ends_before_the_next_reads(places):
    """Else tokens that were read before a revocation could win over those read after it."""
    inside, most = 0, 0

    class Watched(Files):
        def read(self):
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            return super().read()

        def host_facts(self):  # what a reload asks for last
            nonlocal inside
            inside -= 1
            return super().host_facts()

    packages = Packages(places.packages, environ={}, progress=print)
    runtime = SubprocessRuntime(places.state_dir)
    async with Bridge(places, HostSettings(), runtime, packages, Watched(places)) as bridge:
        await asyncio.gather(*(bridge.reload() for _ in range(8)))
    await packages.close()
    assert (inside, most) == (0, 1)
