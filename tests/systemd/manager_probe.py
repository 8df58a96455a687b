"""Asks systemd about units and runs them, by one of the two managers; prints what came of it."""

import json
import sys
from dataclasses import asdict

from autobot_mcp_bridge.units.bindings import bus_manager
from autobot_mcp_bridge.units.manager import SystemctlManager
from autobot_mcp_bridge.units.systemctl import SystemctlError

manager = bus_manager() if sys.argv[1] == "pystemd" else SystemctlManager()
assert manager is not None
assert manager.name == sys.argv[1]


def attempt(verb, unit):
    try:
        getattr(manager, verb)(unit)
    except SystemctlError:
        return "refused"
    return manager.facts(unit).active


found = {
    "facts": {unit: asdict(manager.facts(unit)) for unit in sys.argv[2:]},
    "did": [
        [verb, unit, attempt(verb, unit)]
        for unit in sys.argv[2:]
        for verb in ("start", "stop", "reset_failed")
    ],
}
print(json.dumps(found))
