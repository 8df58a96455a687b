"""What a server's uid could not reach is refused with the command that helps."""

import grp
import os
import pwd
import subprocess

import pytest

from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.access.rights import refusals

pytestmark = pytest.mark.root  # only root may give files away


@pytest.fixture(autouse=True)
def as_root(need):
    need("root")


def told(**keys):
    return list(refusals(ServerSpec.model_validate({"name": "a", "command": ["/bin/cat"], **keys})))


@pytest.fixture
def open_path(tmp_path):
    """A directory that everybody can pass, whatever pytest makes its own ones like."""
    for place in (tmp_path, *tmp_path.parents):
        if not place.stat().st_mode & 0o001:
            place.chmod(place.stat().st_mode | 0o011)
    tmp_path.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("mode", [0o700, 0o770, 0o750, 0o701, 0o704])
def test_a_directory_that_others_cannot_pass_is_named_and_the_command_helps(open_path, mode):
    (open_path / "in").mkdir()
    open_path.chmod(mode)

    (clause,) = told(paths={"read": [str(open_path / "in")]}) or told(
        paths={"read": [str(open_path)]}
    )

    assert clause.startswith("$.paths.read[0]: ")
    command = clause.partition("run: ")[2]
    subprocess.run(command.split(), check=True)
    assert not told(paths={"read": [str(open_path / "in")]})


def test_what_a_group_may_read_needs_the_group(open_path):
    group = grp.getgrnam("games")
    open_path.chmod(0o750)
    os.chown(open_path, 0, group.gr_gid)

    assert told(paths={"read": [str(open_path)]})
    assert not told(paths={"read": [str(open_path)]}, groups=["games"])


def test_writing_for_everybody_is_never_proposed(open_path):
    (clause,) = told(paths={"write": [str(open_path)]})

    assert "o+" not in clause
    assert "groups" in clause


def test_an_account_of_the_host_has_its_own_rights(open_path):
    user = pwd.getpwnam("games")
    open_path.chmod(0o700)
    os.chown(open_path, user.pw_uid, user.pw_gid)

    assert told(paths={"write": [str(open_path)]})
    assert not told(paths={"write": [str(open_path)]}, run_as="games")


def test_what_does_not_exist_is_named():
    found = told(paths={"read": ["/no/such/path"]}, groups=["nobody-of-this-name"], run_as="games")

    assert any("No such file" in clause for clause in found)
    assert any("groupadd --system nobody-of-this-name" in clause for clause in found)
    (clause,) = told(run_as="nobody-of-this-name")
    assert "useradd --system nobody-of-this-name" in clause


@pytest.mark.parametrize("name", ["root", "Root", "a b", "", "-x", "a" * 40])
def test_root_and_what_is_no_users_name_are_refused_by_the_model(name):
    with pytest.raises(ValueError, match="run_as"):
        told(run_as=name)
