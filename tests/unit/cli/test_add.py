"""What the options of `mcp-bridge add` become, and how their mistakes are told."""

import argparse
import json

import pytest

from autobot_mcp_bridge.cli import definition
from autobot_mcp_bridge.config import accepted
from autobot_mcp_bridge.config.accepted import Accepted
from autobot_mcp_bridge.config.load import load


def added(places, run, *words):
    """The entry that `add` has written."""
    status, _, err = run("add", "files", *words, "--", "server", "word")
    assert status == 0, err
    (entry,) = json.loads((places.servers_d / "files.json").read_text())["servers"]
    assert (entry.pop("name"), entry.pop("command")) == ("files", ["server", "word"])
    return entry


@pytest.fixture
def units(places):
    """A host on which servers become units."""
    places.state_dir.mkdir(parents=True, exist_ok=True)
    accepted.write(places.accepted, Accepted(digest="1"))


@pytest.mark.parametrize(
    ("words", "entry"),
    [
        ("", {}),
        ("--network internet", {"network": {"mode": "internet"}}),
        (
            "--network names --allow api.example.org --allow *.example.net:8443",
            {"network": {"mode": "names", "allow": ["api.example.org", "*.example.net:8443"]}},
        ),
        (
            "--network list --allow 192.0.2.0/24",
            {"network": {"mode": "list", "allow": ["192.0.2.0/24"]}},
        ),
        ("--profile node", {"profile": "node"}),
        ("--env A=b=c --env D=", {"env": {"A": "b=c", "D": ""}}),
        ("--read /srv --write /var/x", {"paths": {"read": ["/srv"], "write": ["/var/x"]}}),
        ("--memory 1G --cpu 200%", {"limits": {"memory": "1G", "cpu": "200%"}}),
        ("--sessions shared --warm", {"sessions": "shared", "warm": True}),
        ("--disabled", {"enabled": False}),
        ("--tool-allow read_*", {"tools": {"allow": ["read_*"]}}),
        ("--cwd /", {"cwd": "/"}),
        (
            "--memory 1G --set limits.tasks=64 --set timeouts.call=5m",
            {"limits": {"memory": "1G", "tasks": 64}, "timeouts": {"call": "5m"}},
        ),
        ('--set tools.deny=["a","b"]', {"tools": {"deny": ["a", "b"]}}),
        ("--set max_exposure=0.5", {"max_exposure": 0.5}),
        ("--secret TOKEN=github", {"credentials": {"TOKEN": "github"}}),
        (
            "--secret KEY=file:cert --secret ROOT=/etc/x --secret PEM=file:/etc/y",
            {
                "credentials": {
                    "KEY": {"name": "cert", "as": "file"},
                    "ROOT": {"file": "/etc/x"},
                    "PEM": {"file": "/etc/y", "as": "file"},
                }
            },
        ),
    ],
)
@pytest.mark.usefixtures("units")
def test_each_option_is_a_key_of_the_definition(places, run, words, entry):
    assert added(places, run, *words.split()) == entry
    assert load(places).problems == ()


def test_a_remote_server_has_a_url_and_headers_and_no_command():
    parser = argparse.ArgumentParser()
    definition.add_options(parser)
    words = ["--url=https://mcp.example.org/mcp", "--header=X-Team: a=b", "--header=X-Of=c:d"]
    secrets = ["--header-secret=Authorization=Bearer acme", "--header-secret=X-Key=other"]
    args = parser.parse_args([*words, *secrets])
    args.rest = None

    assert definition.definition_of(args).settings == {
        "url": "https://mcp.example.org/mcp",
        "headers": {
            "X-Team": "a=b",
            "X-Of": "c:d",
            "Authorization": {"credential": "acme", "prefix": "Bearer "},
            "X-Key": {"credential": "other"},
        },
    }


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--network lan", "--network: \"lan\": allowed is 'none', 'loopback', 'list'"),
        ("--network names", "--allow: a list: network.mode names needs at least one entry"),
        ("--allow 192.0.2.1", "--allow: a list: network.mode none takes none"),
        ("--network list --allow example.org", '--allow: "example.org": '),
        ("--profile cobol", "--profile: \"cobol\": allowed is 'strict', 'python'"),
        ("--memory much", '--memory: "much": allowed is a number of bytes'),
        ("--memory 1K", "--memory: 1024: allowed is at least 4M"),
        ("--cpu 3", '--cpu: "3": allowed is a percentage'),
        ("--sessions none", "--sessions: \"none\": allowed is 'shared' or 'isolated'"),
        ("--read srv", '--read: "srv": allowed is an absolute path'),
        ("--cwd /no/such/place", '--cwd: "/no/such/place": allowed is a directory'),
        ("--env A", "--env: allowed is KEY=VALUE"),
        ("--env 1A=b", "--env 1A: as a key, allowed is a name of letters"),
        ("--secret TOKEN", "--secret: allowed is KEY=SECRET or KEY=file:SECRET"),
        ("--secret TOKEN=a/b", "--secret TOKEN: allowed is "),
        ("--set limits.task=64", "--set limits.task: unknown key, nearest is 'tasks'"),
        ("--set limit.tasks=64", "--set limit.tasks: unknown key, nearest is 'limits'"),
        ("--set timeouts.call=soon", '--set timeouts.call: "soon": allowed is a number'),
        ("--set name=other", "--set name: allowed is any key but tenant, project, name"),
        ("--warm --set warm.x=1", "--set warm.x: warm is set as a whole already"),
        ("--set limits", "--set: allowed is KEY=VALUE"),
        ("--header Name", "--header: allowed is NAME=TEXT"),
    ],
)
@pytest.mark.usefixtures("units")
def test_a_mistake_is_told_with_its_option_and_writes_nothing(places, run, words, told):
    status, out, err = run("add", "files", *words.split(), "--", "server")

    assert (status, out) == (64, "")
    assert told in err
    assert list(places.servers_d.iterdir()) == [] and not places.tokens_d.exists()


def test_all_mistakes_are_told_together_and_no_value_of_a_secret_place(run):
    words = ("--memory", "much", "--network", "lan", "--env", "1TOKEN=hunter2")
    _, _, err = run("add", "files", *words, "--", "server")

    assert all(option in err for option in ("--memory: ", "--network: ", "--env 1TOKEN: "))
    assert "hunter2" not in err


def test_what_only_a_unit_keeps_is_refused_without_systemd_by_its_option(run):
    status, _, err = run("add", "files", "--secret", "TOKEN=github", "--", "server")

    assert status == 64
    assert "--secret TOKEN: only a unit of systemd keeps it" in err
