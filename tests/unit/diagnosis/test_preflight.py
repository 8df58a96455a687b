"""What is told without starting anything."""

import pytest

from autobot_mcp_bridge.config.accepted import AcceptedServer
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.diagnosis.check import Level
from autobot_mcp_bridge.diagnosis.preflight import Preflight
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.states import State
from autobot_mcp_bridge.units.manager import UnitFacts


class Host:
    """A systemd whose units all run, but for those that are given."""

    name = "a fake"

    def __init__(self, **units):
        self.units = units

    def facts(self, unit):
        active, result = self.units.get(unit.replace("-", "_").replace(".", "_"), ("active", ""))
        return UnitFacts(load="loaded", active=active, result=result)


@pytest.fixture
def examined(tmp_path):
    """The checks of a server, by what they are about."""

    def examined(host, server=None):
        places = Places(tmp_path / "config", tmp_path / "state", tmp_path / "run")
        preflight = Preflight(places, host, None)
        last = preflight.run("files", server)
        return {
            check.what: check for check in preflight.checks if check.level is not Level.OK
        }, last

    return examined


def test_a_path_unit_that_has_failed_is_named_with_what_starts_it_again(examined):
    checks, _ = examined(Host(mcp_bridge_apply_path=("failed", "resources")))

    assert checks["changes"].level is Level.WARN
    assert "mcp-bridge-apply.path is failed (resources)" in checks["changes"].text
    assert checks["changes"].mend == "systemctl restart mcp-bridge-apply.path"


def test_path_units_that_watch_are_nothing_to_tell(examined):
    assert "changes" not in examined(Host())[0]


def test_a_server_that_is_refused_is_told_with_what_the_host_lacks(examined):
    spec = ServerSpec.model_validate({"name": "files", "command": ["/bin/cat"]})
    why = "$.cwd: there is none"

    _, check = examined(Host(), AcceptedServer(spec, State.REFUSED, why, refused=why))

    assert (check.code, why in check.text) == ("not_in_force", True)
    assert "mcp-bridge apply" in check.mend
