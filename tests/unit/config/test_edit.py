import json
import stat

import pytest

from autobot_mcp_bridge.config import edit
from autobot_mcp_bridge.config.errors import DataError, MissingError
from autobot_mcp_bridge.config.load import load
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.names import parse_instance
from support.configured import SMALL, places_in, write_servers, write_text

TIME = parse_instance("time")
BY_HAND = """{"version": 1,  "defaults": {"warm": true},
 "servers": [
   {"name": "time", "command": ["uvx", "mcp-server-time"],
    "limits": {"memory": "64M"}},

   {"name": "two",   "tenant": "acme", "command": ["x"], "enabled": true}
 ]}
"""


@pytest.fixture
def places(tmp_path):
    return places_in(tmp_path)


def test_an_added_server_gets_a_file_of_its_own_with_only_what_was_given(places):
    server = parse_instance("acme.web.files")

    edited = edit.add(places, server, {"command": ["npx", "x"]})

    assert edited.file == places.servers_d / "acme.web.files.json"
    assert stat.S_IMODE(edited.file.stat().st_mode) == 0o644
    assert json.loads(edited.file.read_text(encoding="utf-8"))["servers"] == [
        {"tenant": "acme", "project": "web", "name": "files", "command": ["npx", "x"]}
    ]
    assert [spec.id for spec in load(places).servers] == [server]


def test_a_server_that_exists_cannot_be_added(places):
    write_servers(places, SMALL)

    with pytest.raises(UsageError, match=r"servers\.json"):
        edit.add(places, TIME, {"command": ["x"]})


def test_an_edit_that_would_be_wrong_writes_nothing(places):
    with pytest.raises(DataError, match=r"\$\.servers\[0\]\.cwd"):
        edit.add(places, TIME, {"command": ["x"], "cwd": "/no/such/place"})

    assert list(places.servers_d.iterdir()) == []


def test_an_edit_of_one_server_is_refused_while_another_is_wrong(places):
    write_servers(places, {**SMALL, "name": "other", "warm": 1})

    with pytest.raises(DataError, match="warm"):
        edit.add(places, TIME, {"command": ["x"]})

    assert list(places.servers_d.iterdir()) == []


def test_a_wrong_server_can_be_removed(places):
    write_servers(places, SMALL, {**SMALL, "name": "bad", "warm": 1})

    edit.remove(places, parse_instance("bad"))

    assert load(places).problems == ()
    assert [spec.name for spec in load(places).servers] == ["time"]


def test_removing_the_only_server_of_its_own_file_removes_the_file(places):
    edited = edit.add(places, TIME, {"command": ["x"]})

    edit.remove(places, TIME)

    assert not edited.file.exists()


def test_only_the_exact_name_is_meant(places):
    write_servers(places, *({**SMALL, "name": name} for name in ("git", "git-admin")))
    edit.add(places, parse_instance("acme.git"), {"command": ["x"]})

    edit.remove(places, parse_instance("git"))

    assert sorted(spec.instance for spec in load(places).servers) == ["acme.git", "git-admin"]
    with pytest.raises(MissingError, match=r"acme\.git, git-admin"):
        edit.remove(places, parse_instance("gi"))


def test_disabling_keeps_the_layout_that_a_person_gave_the_file(places):
    write_text(places.servers_json, BY_HAND)
    places.servers_json.chmod(0o640)

    assert edit.enable(places, TIME, enabled=False).changed
    off = places.servers_json.read_text(encoding="utf-8")
    edit.enable(places, parse_instance("acme.two"), enabled=False)
    both = places.servers_json.read_text(encoding="utf-8")

    assert off == BY_HAND.replace('"64M"}}', '"64M"}, "enabled": false}')
    assert both == off.replace('"enabled": true', '"enabled": false')
    assert stat.S_IMODE(places.servers_json.stat().st_mode) == 0o640


def test_removing_the_last_server_of_all_leaves_a_configuration_without_servers(places):
    edit.add(places, TIME, {"command": ["x"]})

    edit.remove(places, TIME)

    loaded = load(places)
    assert loaded.found
    assert not (loaded.problems or loaded.servers)


def test_removing_keeps_the_layout_of_the_others(places):
    write_text(places.servers_json, BY_HAND)

    edit.remove(places, TIME)

    start, end = BY_HAND.index('{"name": "time"'), BY_HAND.index('{"name": "two"')
    assert places.servers_json.read_text(encoding="utf-8") == BY_HAND[:start] + BY_HAND[end:]


def test_enabling_what_is_enabled_changes_nothing(places):
    write_text(places.servers_json, BY_HAND)

    assert not edit.enable(places, TIME, enabled=True).changed
    assert places.servers_json.read_text(encoding="utf-8") == BY_HAND


def test_an_edit_follows_a_symlink_and_leaves_it(places, tmp_path):
    write_text(tmp_path / "real.json", BY_HAND)
    places.servers_json.symlink_to(tmp_path / "real.json")

    edit.enable(places, TIME, enabled=False)

    assert places.servers_json.is_symlink()
    assert '"enabled": false' in (tmp_path / "real.json").read_text(encoding="utf-8")


def test_no_half_written_file_is_left_behind(places):
    edit.add(places, TIME, {"command": ["x"]})
    edit.enable(places, TIME, enabled=False)

    assert [path.name for path in places.servers_d.iterdir()] == ["time.json"]
