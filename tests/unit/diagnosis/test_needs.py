"""What root looks at before a server is started, where a server may have had its hands on it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from autobot_mcp_bridge.diagnosis import needs
from autobot_mcp_bridge.diagnosis.check import Level
from autobot_mcp_bridge.diagnosis.original import Original
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.manager import UnitFacts


def original(*lines, **keys):
    spec = ServerSpec.model_validate({"name": "one", "command": ["/bin/cat"], **keys})
    return Original(spec, ("/bin/cat",), UnitFacts(), (), {"50.conf": "\n".join(lines)})


def test_a_program_of_root_s_is_asked_by_the_path_that_nobody_else_can_change(tmp_path):
    link = tmp_path / "python3"
    link.symlink_to("/usr/bin/python3")

    assert needs.roots_own(link) == Path("/usr/bin/python3").resolve()


def test_a_program_in_a_directory_of_somebody_else_s_is_not_run(tmp_path):
    own = tmp_path / "python3"
    shutil.copy("/bin/true", own)
    own.chmod(0o755)
    tmp_path.chmod(0o777)

    assert needs.roots_own(own) is None


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


@pytest.mark.parametrize(
    ("directive", "folder"),
    [
        ("LoadCredential", "/etc/credstore"),
        ("LoadCredentialEncrypted", "/etc/mcp-bridge/credstore.encrypted"),
    ],
)
def test_of_a_secret_that_is_missing_the_command_is_told_that_encrypts_it(directive, folder):
    (found,) = needs.of_credentials(original("[Service]", f"{directive}=KEY:{folder}/no-such-one"))

    assert found.mend == "store it: mcp-bridge secret set no-such-one"


def test_of_a_file_of_root_s_that_is_missing_its_path_is_told():
    (found,) = needs.of_credentials(original("[Service]", "LoadCredential=KEY:/srv/no-such/one"))

    assert found.mend == "store it: install -m 0600 /dev/stdin /srv/no-such/one"
