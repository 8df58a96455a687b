"""What apply would change: a pure comparison."""

import pytest

from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.config.load import Loaded
from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.states import State
from autobot_mcp_bridge.units.packages.job import InstallError
from autobot_mcp_bridge.units.packages.specs import parse_command
from autobot_mcp_bridge.units.plan import plan
from autobot_mcp_bridge.units.sandbox.confinement import Facts


def spec(name, *command, **keys):
    return ServerSpec.model_validate({"name": name, "command": command or ("/bin/cat",), **keys})


def loaded(*specs):
    return Loaded(specs, HostSettings(), (), "digest")


def resolve(found):
    argv = found.command
    if argv[0] == "npx":
        return parse_command(argv)
    if argv[0] == "nowhere":
        raise InstallError("nowhere: no such program")
    return Command(argv)


def planned(*specs, there=()):
    return plan(loaded(*specs), resolve, Facts(), dict(there))


def test_what_is_new_changed_and_gone_is_told_and_the_rest_left_alone():
    before = planned(spec("kept"), spec("changed"), spec("gone")).texts

    after = planned(
        spec("kept"), spec("changed", warm=True, limits={"memory": "1G"}), spec("new"), there=before
    )

    assert after.added == ("new",)
    assert after.changed == ("changed",)
    assert after.removed == ("gone",)
    assert "MemoryMax=1073741824" in after.texts["changed"]


def test_the_same_configuration_changes_nothing():
    before = planned(spec("a"), spec("b")).texts

    assert not planned(spec("b"), spec("a"), there=before).has_units


def test_what_only_the_proxy_has_to_know_changes_no_unit():
    before = planned(spec("a")).texts

    after = planned(spec("a", tools={"deny": ["rm"]}, timeouts={"call": "5s"}), there=before)

    assert not after.has_units
    assert after.accepted.servers[0].spec.tools.deny == ("rm",)


def test_a_package_that_is_missing_is_installing_and_keeps_the_units_it_has():
    server = spec("files", "npx", "-y", "@modelcontextprotocol/server-filesystem@1.0.0")

    fresh, upgraded = planned(server), planned(server, there={"files": "the old version's"})

    assert fresh.accepted.servers[0].state is State.INSTALLING
    assert [package.label for package in fresh.missing] == [
        "@modelcontextprotocol/server-filesystem@1.0.0"
    ]
    assert not fresh.has_units
    assert not upgraded.has_units


def test_a_program_that_is_not_there_is_its_servers_state_and_no_failure():
    result = planned(spec("bad", "nowhere"), spec("good"))

    assert result.added == ("good",)
    states = {server.spec.instance: server for server in result.accepted.servers}
    assert states["bad"].state is State.INSTALL_FAILED
    assert "no such program" in states["bad"].why


def test_a_missing_secret_is_its_servers_state_and_its_units_are_made():
    def missing(found):
        return [f"{name}: gone" for name in found.credentials]

    specs = spec("lacks", credentials={"A": "one", "B": "two"}), spec("whole")
    result = plan(
        loaded(*specs), resolve, Facts(), {}, missing_secrets=missing, rotations={"two": 7}
    )

    assert result.added == ("lacks", "whole")
    lacks, whole = result.accepted.servers
    assert (lacks.state, lacks.why) == (State.CREDENTIAL_MISSING, "A: gone; B: gone")
    assert (lacks.rotated, whole.state, whole.rotated) == (7, None, 0)


def test_a_disabled_server_has_no_units_and_is_known_all_the_same():
    before = planned(spec("a")).texts

    result = planned(spec("a", enabled=False), there=before)

    assert result.removed == ("a",)
    assert [server.spec.instance for server in result.accepted.servers] == ["a"]


def test_all_that_no_unit_can_carry_is_told_at_once():
    with pytest.raises(DataError) as caught:
        planned(spec("a", "/bin/x", "\ufdd0"), spec("b", "/bin/x", env={"A": "\ufdd0"}), spec("c"))

    lines = str(caught.value).splitlines()
    assert [line.split(":")[0] for line in lines] == ["a", "b"]
    assert "$.command[1]" in lines[0]
    assert "$.env.A" in lines[1]
