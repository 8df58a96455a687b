"""What `status` and `list --wide` say of a server's sandbox."""

import json

import pytest

from autobot_mcp_bridge.cli import listing, sandbox
from autobot_mcp_bridge.config import accepted, enforced
from autobot_mcp_bridge.config.accepted import Accepted, AcceptedServer
from autobot_mcp_bridge.model.promises import Kept, Promise
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.sandbox.resolvers import Resolvers
from autobot_mcp_bridge.units.systemctl import SystemctlError
from support.configured import SMALL, write_servers

NODE = ("/usr/bin/node", "server.js")


def server(argv=NODE, **keys):
    spec = {"name": "files", "command": ["npx", "x"], **keys}
    return AcceptedServer(ServerSpec.model_validate(spec), argv=argv)


@pytest.fixture
def shown(places, monkeypatch, tmp_path):
    """The lines about a server, by their names; its unit's figure is 0.2 where it can be told."""
    folder = sandbox.folder_of(tmp_path, "files")
    folder.mkdir()
    (folder / sandbox.DROP_IN).write_text("", encoding="utf-8")
    monkeypatch.setattr(sandbox, "UNITS", tmp_path)
    monkeypatch.setattr(sandbox.resolvers, "read", lambda: Resolvers(("192.0.2.53",)))
    figures = {"files": 0.2}

    def levels(texts, timeout):
        assert timeout <= 0.5
        if not figures:
            raise SystemctlError("it took too long")
        return {instance: figures[instance] for instance in texts}

    monkeypatch.setattr(sandbox.exposure, "levels", levels)

    def shown(of, *, units=True, judged=True):
        if not judged:
            figures.clear()
        found = sandbox.sandbox_of(of, places, units=units)
        assert json.loads(json.dumps(found)) == found | {
            "paths": {key: [*paths] for key, paths in found["paths"].items()}
        }
        return dict(sandbox.lines_of(found, units=units))

    return shown


def test_a_plain_server_is_told_in_three_lines(shown):
    assert shown(server()) == {
        "sandbox": "profile node, exposure 0.2",
        "network": "none",
        "limits": "memory 512M, cpu 100%, tasks 128, open files 1024",
    }


def test_what_is_let_through_is_told_with_names_of_secrets_and_no_value(shown):
    lines = shown(
        server(
            network={"mode": "names", "allow": ["api.example.org"]},
            credentials={"TOKEN": "github", "PEM": {"file": "/etc/x", "as": "file"}},
            paths={"read": ["/srv/a", "/srv/b"]},
            max_exposure=1,
            limits={"memory": "1G", "memory_high": "900M"},
        )
    )

    assert lines["sandbox"] == "profile node, exposure 0.2 of at most 1"
    assert lines["network"].startswith("names: api.example.org:443, by TLS")
    assert lines["secrets"] == "PEM from /etc/x, TOKEN from github"
    assert lines["may read"] == "/srv/a, /srv/b"
    assert "may write" not in lines
    assert lines["limits"].startswith("memory 1G, memory high 900M, cpu 100%")


def test_the_profile_is_that_of_what_is_executed_unless_it_is_named(shown):
    assert shown(server(("/usr/bin/python3",), command=["x"]))["sandbox"].startswith(
        "profile python,"
    )
    assert shown(server(profile="strict"))["sandbox"].startswith("profile strict,")
    lines = shown(server(("/usr/bin/npx",), profile="npx"))
    assert lines["network"].startswith("internet: public addresses")
    assert "192.0.2.53" in lines["network"]


def test_a_figure_that_nobody_can_tell_in_time_is_left_out_but_not_its_bar(shown):
    assert shown(server(), judged=False)["sandbox"] == "profile node"
    assert shown(server(max_exposure=1))["sandbox"] == "profile node, exposure unknown of at most 1"


def test_what_the_host_does_not_keep_for_this_server_is_told(shown, places):
    places.runtime_dir.mkdir(parents=True, exist_ok=True)
    facts = {promise: Kept(kept=True) for promise in Promise}
    lost = {Promise.CPU: Kept(kept=False, why="no cpu controller")}
    enforced.write(places.enforced, facts | lost)

    assert "no cpu controller" in shown(server())["not kept"]
    enforced.write(places.enforced, facts)
    assert "not kept" not in shown(server())


def test_without_units_there_is_no_sandbox_to_tell_of(shown):
    lines = shown(server(network={"mode": "internet"}), units=False)

    assert lines["sandbox"] == "none: there are no units"
    assert lines["limits"] == "memory 512M, open files 1024"
    assert lines["not kept"].startswith("network.mode internet is not kept")


@pytest.mark.parametrize(("room", "there"), [(None, True), (200, True), (80, False)])
def test_the_list_has_profile_and_network_where_they_fit(places, run, monkeypatch, room, there):
    monkeypatch.setattr(listing, "_room", lambda: room)
    write_servers(places, {**SMALL, "name": "time", "network": {"mode": "internet"}})

    head, row, *_ = run("list", "--wide")[1].splitlines()

    assert ("PROFILE  NETWORK" in head, "python   internet" in row) == (there, there)
    (entry,) = json.loads(run("list", "--wide", "--json")[1])["servers"]
    assert (entry["profile"], entry["network"]) == ("python", "internet")


def test_what_is_in_force_counts_and_not_what_the_files_say(places, run):
    write_servers(places, {**SMALL, "name": "files", "network": {"mode": "internet"}})
    places.state_dir.mkdir(parents=True, exist_ok=True)
    accepted.write(places.accepted, Accepted(servers=(server(),), digest="1"))

    (entry,) = json.loads(run("list", "--wide", "--json")[1])["servers"]

    assert (entry["profile"], entry["network"]) == ("node", "none")
