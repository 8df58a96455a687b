"""Asking the registries for versions in a sandbox: no program of a stranger's is run by root.

    python3 -I -m autobot_mcp_bridge.units.fetch.ask STORE

is the process of a transient unit (systemd-run(1)), as a dynamic user; `ask_in_unit` starts it. On
its stdin are the packages and the names of the variables that go on, on its stdout what it heard.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from autobot_mcp_bridge.units import transient
from autobot_mcp_bridge.units.fetch.fetches import as_document, from_document
from autobot_mcp_bridge.units.host.place import PROGRAM
from autobot_mcp_bridge.units.packages import newest
from autobot_mcp_bridge.units.packages.newest import Newest
from autobot_mcp_bridge.units.packages.specs import PackageSpec
from autobot_mcp_bridge.units.packages.store import Store
from autobot_mcp_bridge.units.systemctl import SystemctlError

# As mcp-bridge-fetch@.service; DynamicUser= brings ProtectSystem=strict, PrivateTmp=,
# NoNewPrivileges= and RestrictSUIDSGID= with it (systemd.exec(5)).
SANDBOX = {
    "DynamicUser": "yes",
    "EnvironmentFile": "-/etc/mcp-bridge/environment",
    "Environment": "LANG=C.UTF-8 HOME=/tmp",
    "InaccessiblePaths": "-/etc/mcp-bridge -/etc/credstore -/etc/credstore.encrypted "
    "-/run/mcp-bridge -/run/dbus",
    "CapabilityBoundingSet": "",
    "PrivateUsers": "yes",
    "ProtectHome": "yes",
    "PrivateDevices": "yes",
    "PrivateIPC": "yes",
    "ProtectClock": "yes",
    "ProtectHostname": "yes",
    "ProtectControlGroups": "yes",
    "ProtectKernelLogs": "yes",
    "ProtectKernelModules": "yes",
    "ProtectKernelTunables": "yes",
    "ProtectProc": "invisible",
    "ProcSubset": "pid",
    "RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    "RestrictNamespaces": "yes",
    "RestrictRealtime": "yes",
    "LockPersonality": "yes",
    "SystemCallArchitectures": "native",
    "SystemCallFilter": "@system-service",
    "SystemCallErrorNumber": "EPERM",
    "MemoryMax": "2G",
    "TasksMax": "256",
    # What it can write to root's file, too.
    "LimitFSIZE": "256M",
    "LimitCORE": "0",
}
MOST_ANSWER = 16 << 20
_OWN = ("PATH", "HOME", "LANG", "TMPDIR")


def ask_in_unit(
    specs: Iterable[PackageSpec], store: Store, passed: tuple[str, ...]
) -> dict[PackageSpec, Newest]:
    """`newest.ask` for root on a host with systemd: with the settings that installs get. Blocks.

    Raises:
        SystemctlError: the unit could not be started, or did not do its work.
    """
    wanted = list(dict.fromkeys(specs))
    seconds = newest.seconds_for(len(wanted))
    program = [f"/{PROGRAM}/bin/python", "-I", "-m", "autobot_mcp_bridge.units.fetch.ask"]
    asked = {"specs": [as_document(spec) for spec in wanted], "pass": passed}
    try:
        done = transient.run(
            [*program, str(store.root)],
            SANDBOX,
            seconds=seconds,
            most=MOST_ANSWER + 1,
            given=json.dumps(asked).encode(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SystemctlError(f"systemd-run: {error}") from None
    is_whole = done.status == 0 and len(done.answer) <= MOST_ANSWER
    try:
        found = json.loads(done.answer) if is_whole else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or len(found) != len(wanted):
        raise SystemctlError(f"the registries could not be asked: {done.said or 'no answer'}")
    return {spec: Newest.read(value) for spec, value in zip(wanted, found, strict=True)}


def main(root: str) -> int:
    asked = json.load(sys.stdin)
    specs = [from_document(found) for found in asked["specs"]]
    names = (*_OWN, *asked["pass"])
    environ = {name: os.environ[name] for name in names if name in os.environ}
    found = newest.ask(specs, Store(Path(root)), environ)
    print(json.dumps([asdict(found[spec]) for spec in specs]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
