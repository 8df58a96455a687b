"""What root looks at before a server is started, where a server may have had its hands on it."""

import os
import subprocess

import pytest

from autobot_mcp_bridge.diagnosis import needs, wrapped
from autobot_mcp_bridge.diagnosis.check import Level
from autobot_mcp_bridge.diagnosis.original import Original
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.manager import UnitFacts
from autobot_mcp_bridge.units.sandbox import image


def original(*lines, **keys):
    spec = ServerSpec.model_validate({"name": "one", "command": ["/bin/cat"], **keys})
    return Original(spec, ("/bin/cat",), UnitFacts(), (), {"50.conf": "\n".join(lines)})


def test_a_program_is_asked_by_the_path_that_nobody_else_can_change(tmp_path, monkeypatch):
    link = tmp_path / "python3"
    link.symlink_to("/usr/bin/python3")
    asked = []
    monkeypatch.setattr(needs, "_version", lambda program: asked.append(program) or "3")

    spec = ServerSpec.model_validate({"name": "one", "command": [str(link)]})
    tmp_path.chmod(0o755)
    [*needs.of_command(spec, spec.command)]

    assert [path for path in asked if path.is_symlink() or tmp_path in path.parents] == []


def test_the_program_of_a_root_of_its_own_is_not_looked_for_in_the_host_s():
    keys = {"name": "one", "command": ["/opt/only-there"], "root": {"directory": "/srv/one"}}
    spec = ServerSpec.model_validate(keys)

    (found,) = needs.of_command(spec, spec.command)
    change = wrapped.filtered(Original(spec, spec.command, UnitFacts(), (), {}), "noise")

    assert found.level is Level.OK
    assert f" {image.LAUNCHER} " in change.lines[1]


@pytest.fixture
def deep(reachable):
    """A tree that pytest could not remove itself."""
    (reachable / "link").symlink_to("/etc")
    at = os.open(reachable, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    yield reachable
    subprocess.run(["rm", "-rf", reachable / "d"], check=True)


def test_a_state_directory_may_be_as_deep_as_its_server_likes(deep):
    found = needs.of_directory(deep)

    assert found.level is Level.OK
    assert f"belongs to uid {os.geteuid()}" in found.text
