"""As whom an instance runs: a uid of its own, groups that it is given, or an account of the host."""

import pytest

from support.containers import properties
from support.installed import instance, spec_of

pytestmark = pytest.mark.lab

SECRET = "/srv/team/plan"


@pytest.fixture(scope="module")
def team(installed):
    """A group and an account of the host, and a file that both may read and others may not."""
    installed.check("groupadd", "--system", "team")
    installed.check("useradd", "--system", "--user-group", "worker")
    installed.write(SECRET, "the plan\n", 0o640)
    installed.check("chmod", "0750", "/srv/team")
    installed.check("chgrp", "-R", "team", "/srv/team")
    return installed


def said(container, spec):
    """What the server writes until it ends."""
    with instance(container, spec) as unit, unit.start() as handed:
        return handed.read().decode()


def test_a_group_lets_a_server_read_what_its_uid_alone_may_not(team):
    paths = {"read": ["/srv/team"]}

    assert said(team, spec_of("alone", "/bin/cat", SECRET, paths=paths)) == ""
    assert said(team, spec_of("member", "/bin/cat", SECRET, paths=paths, groups=["team"])) == (
        "the plan\n"
    )


def test_an_account_of_the_host_runs_the_server_in_the_same_sandbox(team):
    spec = spec_of(
        "hired",
        "/bin/sh",
        "-c",
        "id -un; touch /usr/x 2>/dev/null || echo refused",
        run_as="worker",
    )

    assert said(team, spec).split() == ["worker", "refused"]
    with instance(team, spec) as unit:
        shown = properties(team, unit.service, "User", "DynamicUser", "NoNewPrivileges")
        assert shown == {"User": "worker", "DynamicUser": "no", "NoNewPrivileges": "yes"}


def test_an_account_owns_its_state_and_finds_it_again(team):
    write = spec_of("keeper", "/bin/sh", "-c", "id -u > kept; stat -c %U:%a .", run_as="worker")
    read = spec_of("keeper", "/bin/cat", "kept", run_as="worker")

    assert said(team, write) == "worker:700\n"
    assert said(team, read).strip() == team.check("id", "-u", "worker").strip()
