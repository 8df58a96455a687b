"""`mcp-bridge import` beside what is there already: nothing of others is touched, all or nothing."""

import io
import json
import sys
from pathlib import Path

import pytest

from autobot_mcp_bridge.cli import importing
from autobot_mcp_bridge.config import many
from autobot_mcp_bridge.config.errors import UnavailableError
from autobot_mcp_bridge.config.sources import read_sources
from autobot_mcp_bridge.config.tokens import TokenStore
from autobot_mcp_bridge.model.names import parse_instance
from autobot_mcp_bridge.units import rotations
from connect.importing import host_in, imported, run
from support.configured import write_servers, write_text

GITHUB = {"command": "npx", "args": ["-y", "gh-mcp"], "env": {"GH_TOKEN": "first", "LEVEL": "info"}}
TIME = {"command": "uvx", "args": ["mcp-server-time"]}
LAID_OUT = """{"version": 1,   "defaults": {"warm": false},
  "servers": [
     {"name": "time",  "command": ["uvx", "other"], "limits": {"memory": "64M"}},

     {"name": "two", "command": ["x"]}
  ]}
"""


@pytest.fixture
def host(tmp_path, monkeypatch):
    return host_in(tmp_path / "host", monkeypatch)


@pytest.fixture
def file(tmp_path):
    """Write a client's file; its path."""

    def write(text=None, **servers):
        path = tmp_path / "client.json"
        path.write_text(text or json.dumps({"mcpServers": servers}), encoding="utf-8")
        return str(path)

    return write


def only(entries):
    (entry,) = entries
    return entry["what"], entry["why"]


def test_a_definition_of_somebody_else_is_only_replaced_when_that_is_asked_for(host, file, capsys):
    write_text(host.places.servers_json, LAID_OUT)

    what, why = only(imported(host, capsys, file(time=TIME)))

    assert (what, host.status) == ("skipped", 1)
    assert "servers.json and differs in command; --replace" in why
    assert host.places.servers_json.read_text(encoding="utf-8") == LAID_OUT
    assert only(imported(host, capsys, file(time=TIME), "--replace"))[0] == "changed"
    text = host.places.servers_json.read_text(encoding="utf-8")
    start, end = LAID_OUT.index('{"name": "time"'), LAID_OUT.index(",\n\n     {")
    assert text.startswith(LAID_OUT[:start]) and text.endswith(LAID_OUT[end:])
    (time, _) = json.loads(text)["servers"]
    assert time["command"] == ["uvx", "mcp-server-time"]
    assert time["limits"] == {"memory": "64M"}  # which no import says anything of


def test_what_a_person_adds_to_an_imported_definition_is_no_difference(host, file, capsys):
    imported(host, capsys, file(gh={**GITHUB, "disabled": True}))
    path = host.places.servers_d / many.FILE
    document = json.loads(path.read_text(encoding="utf-8"))
    (server,) = document["servers"]
    server |= {"enabled": True, "network": {"mode": "internet"}, "warm": True}
    server["env"]["MORE"] = "1"
    write_text(path, json.dumps(document))

    assert only(imported(host, capsys, file(gh=GITHUB))) == ("unchanged", "")
    assert host.status == 0


def test_another_value_of_a_secret_is_a_difference_and_replaced_when_asked_for(
    host, file, capsys, monkeypatch
):
    applied = []

    class Noted:
        def __init__(self, *_args, **_options):
            pass

        def apply(self):
            applied.append([*rotations.read(host.places.state_dir)])

    monkeypatch.setattr(importing, "Applier", Noted)
    imported(host, capsys, file(gh=GITHUB))
    other = {**GITHUB, "env": {**GITHUB["env"], "GH_TOKEN": "second"}}

    what, why = only(imported(host, capsys, file(gh=other)))

    assert what == "skipped" and "another value is stored as gh-token" in why
    assert host.stored() == {"gh-token": "first"} and applied == []
    assert only(imported(host, capsys, file(gh=other), "--replace"))[0] == "changed"
    assert host.stored() == {"gh-token": "second"}
    assert applied == [["gh-token"]]  # so that what runs with the old one starts anew


def test_what_is_replaced_keeps_what_no_import_says(host, file, capsys):
    theirs = {"network": {"mode": "internet"}, "timeouts": {"idle": "1m", "call": "9s"}}
    old = {"name": "gh", "command": ["old"], "env": {"A": "b"}, "profile": "uvx", **theirs}
    write_servers(host.places, old)

    imported(host, capsys, file(gh={**TIME, "timeout": 30}), "--replace")

    (found,) = json.loads(host.places.servers_json.read_text(encoding="utf-8"))["servers"]
    assert found == {
        "name": "gh",
        "command": ["uvx", "mcp-server-time"],
        "network": {"mode": "internet"},
        "timeouts": {"idle": "1m", "call": 30},
    }


def test_a_replacement_that_does_not_go_with_the_rest_is_skipped_alone(host, file, capsys):
    write_servers(host.places, {"name": "gh", "command": ["old"], "sessions": "isolated"})
    host.places.accepted.unlink()  # without units a server may have it
    run(host, capsys, file(gh=TIME, other=TIME), "--replace")
    assert host.status == 0
    host.places.accepted.write_text("{}", encoding="utf-8")

    told = {each["entry"]: each for each in imported(host, capsys, file(gh=GITHUB), "--replace")}

    assert told["gh"]["what"] == "skipped" and "sessions" in told["gh"]["why"]


def test_a_secret_that_other_servers_use_too_stays_the_entrys(host, file, capsys):
    imported(host, capsys, file(gh=GITHUB))
    also = {"name": "also", "command": ["x"], "credentials": {"T": "gh-token"}}
    write_text(host.places.servers_d / "z.json", json.dumps({"version": 1, "servers": [also]}))

    assert only(imported(host, capsys, file(gh=GITHUB))) == ("unchanged", "")


def test_a_secret_that_somebody_has_set_under_the_name_is_not_taken_for_the_entrys(
    host, file, capsys
):
    host.store.put("gh-token", b"somebody's", (), there=False)

    assert only(imported(host, capsys, file(gh=GITHUB)))[0] == "skipped"
    assert host.stored() == {"gh-token": "somebody's"} and host.servers() == {}


def test_tenants_have_secrets_of_their_own(host, file, capsys):
    for words in (["--tenant", "acme"], ["--tenant", "acme", "--project", "web"], []):
        imported(host, capsys, file(gh=GITHUB), *words)
        assert host.status == 0

    assert len(host.stored()) == 3
    assert len(json.loads((host.places.servers_d / many.FILE).read_text())["servers"]) == 3


def test_labels_that_would_have_one_name_have_two(host, file, capsys):
    env = {"B_TOKEN": "one", "B__TOKEN": "two"}

    imported(host, capsys, file(a={**TIME, "env": env}, **{"a-b": {**TIME, "env": {"TOKEN": "3"}}}))

    assert sorted(host.stored().values()) == ["3", "one", "two"]
    credentials = host.servers()["a"]["credentials"]
    assert {k: host.stored()[v] for k, v in credentials.items()} == env


def test_one_server_in_two_projects_is_one_and_two_that_differ_have_two_names(host, file, capsys):
    projects = {
        "/a": {"mcpServers": {"gh": GITHUB}},
        "/b": {"mcpServers": {"gh": GITHUB}},
        "/c": {"mcpServers": {"gh": TIME}},
    }

    told = imported(host, capsys, file(json.dumps({"projects": projects})))

    assert [(each["server"], each["what"]) for each in told] == [
        ("gh", "added"),
        ("gh", "unchanged"),
        ("gh-2", "added"),
    ]


def test_secrets_go_again_when_the_definitions_cannot_be_written(host, file, capsys):
    write_servers(host.places, {"name": "wrong", "command": ["x"], "warm": 1})
    before = host.tree()

    assert run(host, capsys, file(gh=GITHUB)) == 65
    assert "warm" in host.err and "first" not in host.err
    assert host.tree() == before


def test_a_secret_that_was_replaced_comes_back_when_the_definitions_cannot_be_written(
    host, file, capsys, monkeypatch
):
    imported(host, capsys, file(gh=GITHUB))
    before = host.tree()
    monkeypatch.setattr(many, "replace_file", _full_disk)
    other = {"command": "x", "env": {"GH_TOKEN": "second"}}

    assert run(host, capsys, file(gh=other), "--replace") == 74
    assert {k: v[1] for k, v in host.tree().items()} == {k: v[1] for k, v in before.items()}


def _full_disk(*_args):
    raise OSError(28, "No space left on device")


def test_files_that_were_written_are_put_back_when_a_later_one_cannot_be(host, monkeypatch):
    places = host.places
    write_text(places.servers_json, LAID_OUT)
    real, calls = many.replace_file, []

    def second_fails(path, data, mode):
        calls.append(path)
        if len(calls) == 2:
            _full_disk()
        real(path, data, mode)

    monkeypatch.setattr(many, "replace_file", second_fails)
    new, old = parse_instance("new"), parse_instance("two")

    with pytest.raises(OSError, match="No space"):
        many.put(
            places,
            {new: {"command": ["y"]}},
            {old: {"command": ["z"]}},
            seen=read_sources(places).digest,
        )

    assert len(calls) == 3
    assert places.servers_json.read_text(encoding="utf-8") == LAID_OUT
    assert list(places.servers_d.iterdir()) == []


def test_an_edit_between_planning_and_writing_is_not_overwritten(host):
    seen = read_sources(host.places).digest
    write_text(host.places.servers_json, LAID_OUT)

    with pytest.raises(UnavailableError, match="changed meanwhile"):
        many.put(host.places, {parse_instance("a"): {"command": ["x"]}}, {}, seen=seen)

    assert list(host.places.servers_d.iterdir()) == []


def test_a_second_file_joins_the_first_and_leaves_its_text(host, file, capsys):
    imported(host, capsys, file(gh=GITHUB))
    path = host.places.servers_d / many.FILE
    first = path.read_text(encoding="utf-8")

    imported(host, capsys, file(time=TIME))

    assert path.read_text(encoding="utf-8").startswith(first.rstrip("]}\n "))
    assert host.servers().keys() == {"gh", "time"}


def test_a_dry_run_shows_the_definition_and_writes_nothing(host, file, capsys):
    before = host.tree()

    assert run(host, capsys, file(gh=GITHUB), "--dry-run") == 0
    assert '"GH_TOKEN": "gh-token"' in host.out and "1 secret stored" in host.out
    assert host.tree() == before


def test_a_new_server_gets_a_token_once(host, file, capsys):
    (entry,) = imported(host, capsys, file(gh=GITHUB))

    assert entry["path"] == "/t/default/s/gh/mcp"
    assert entry["token"] in Path(entry["header"]).read_text(encoding="ascii")
    assert len(TokenStore(host.places.tokens_d).list("gh")) == 1
    (again,) = imported(host, capsys, file(gh=GITHUB))
    assert "token" not in again
    (without,) = imported(host, capsys, file(time=TIME), "--no-tokens")
    assert "token" not in without


def test_the_network_is_for_each_server_that_is_a_process(host, file, capsys):
    imported(host, capsys, file(gh=GITHUB, time=TIME), "--network", "internet")

    assert all(each["network"] == {"mode": "internet"} for each in host.servers().values())


def test_only_what_was_asked_for_is_imported(host, file, capsys):
    path = file(gh=GITHUB, time=TIME)

    assert run(host, capsys, path, "--only", "time") == 0
    assert host.servers().keys() == {"time"} and host.stored() == {}
    assert run(host, capsys, path, "--only", "tim") == 64
    assert "--only tim: the file has gh, time" in host.err


@pytest.mark.parametrize("word", ["TOKEN=abc", "PLACE=ghp_1234567890abcdefghij"])
def test_a_secret_in_the_command_line_is_refused_and_not_repeated(word, host, file, capsys):
    assert run(host, capsys, file(gh=GITHUB), "--set", word) == 64
    assert word.partition("=")[2] not in host.err


def test_a_file_comes_over_stdin(host, capsys, monkeypatch):
    data = json.dumps({"mcpServers": {"time": TIME}}).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    assert run(host, capsys, "-") == 0
    assert host.servers().keys() == {"time"}


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", 65),
        ("[" * 5000, 65),
        ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', 65),
        ('{"mcpServers": 5}', 65),
        ('{"other": {}}', 65),
        ('{"version": 1, "servers": [{"name": "a", "command": ["x"]}]}', 65),
        (json.dumps({"mcpServers": {str(n): TIME for n in range(1001)}}), 65),
        ('{"mcpServers": {}}', 0),
    ],
)
def test_a_document_without_servers_is_one_line_and_writes_nothing(
    text, status, host, tmp_path, capsys
):
    path = tmp_path / "bad"
    path.write_text(text, encoding="utf-8")
    before = host.tree()

    assert run(host, capsys, str(path), "--no-tokens") == status
    assert host.err.count("\n") == (1 if status else 0)
    assert host.tree() == before


def test_a_file_that_is_not_there_is_told(host, capsys):
    assert run(host, capsys, "/nonexistent/mcp.json") == 66


def test_one_wrong_entry_holds_up_no_other(host, file, capsys):
    servers = {"a": 5, "b": {"command": 5}, "c": {"command": "x\ny"}, "d": TIME, "e": {"url": "x"}}

    told = {each["entry"]: each["what"] for each in imported(host, capsys, file(**servers))}

    assert told == {"a": "skipped", "b": "skipped", "c": "skipped", "d": "added", "e": "skipped"}
    assert host.status == 1 and host.servers().keys() == {"d"}


def test_an_escape_sequence_of_a_file_does_not_reach_the_terminal(host, file, capsys):
    run(host, capsys, file(**{"a\x1b[2J": {**TIME, "\x1b]0;x\x07": 1}}))

    assert "\x1b" not in host.out + host.err and "\x07" not in host.out
