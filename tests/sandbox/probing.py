"""The probe of a host's kernel, in a machine: with its sandbox, and with parts of it taken away."""

import json

import pytest

from autobot_mcp_bridge.model.promises import Promise

PROBE = "mcp-bridge-probe.service"
DROP_IN = f"/etc/systemd/system/{PROBE}.d/90-test.conf"
# Each setting that the attempts are about, taken away. DynamicUser= would bring some back.
NOTHING = """[Service]
DynamicUser=no
User=nobody
MemoryMax=infinity
TasksMax=infinity
CPUQuota=
CPUWeight=
PrivateNetwork=no
IPAddressDeny=
SystemCallFilter=
MemoryDenyWriteExecute=no
NoExecPaths=
ExecPaths=
ReadOnlyPaths=
ProtectSystem=no
ProtectProc=default
ProtectKernelTunables=no
PrivateUsers=no
"""


def kept(facts):
    return {Promise(name) for name, found in facts.items() if found["kept"]}


def probed(container):
    container.check("systemctl", "start", PROBE, timeout=60.0)
    return json.loads(container.check("cat", "/run/mcp-bridge/probe.json"))


@pytest.fixture
def without():
    """Take settings of the probe away in a container; they are back at the end."""
    containers = []

    def take(container, text=NOTHING):
        containers.append(container)
        container.write(DROP_IN, text)
        container.check("systemctl", "daemon-reload")

    yield take
    for container in containers:
        container.run("rm", "-f", DROP_IN)
        container.check("systemctl", "daemon-reload")
