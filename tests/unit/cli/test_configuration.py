"""check, add, remove, enable, disable, list, schema: without a proxy."""

import json

import pytest

from autobot_mcp_bridge.cli import check
from autobot_mcp_bridge.cli.common import print_table
from autobot_mcp_bridge.config.load import load
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.tokens import TokenStore, digest_of
from autobot_mcp_bridge.model.names import parse_instance
from support.configured import SMALL, write_servers, write_text


def test_check_prints_every_mistake_and_exits_65(places, run):
    write_servers(places, {**SMALL, "warm": 1}, {**SMALL, "name": "b", "limits": {"tasks": 0}})

    status, out, err = run("check")

    assert status == 65
    assert len(out.splitlines()) == 2
    assert "2 mistakes" in err


def test_check_tells_programs_the_same(places, run):
    write_servers(places, {**SMALL, "warm": 1})

    status, out, _ = run("check", "--json")

    assert status == 65
    found = json.loads(out)
    assert found["ok"] is False
    assert found["problems"] == [
        {
            "file": str(places.servers_json),
            "path": "$.servers[0].warm",
            "value": "1",
            "allowed": "allowed is true or false",
        }
    ]


def test_check_says_once_per_server_what_this_runtime_cannot_keep(places, run):
    write_servers(places, SMALL, {**SMALL, "name": "b", "paths": {"read": ["/srv"]}})

    status, _, err = run("check")

    assert status == 0
    assert [line.split(": ")[1] for line in err.splitlines()] == ["time", "b"]
    assert "paths is not kept" in err


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_check_tells_a_wrong_entry_of_a_list_of_names_where_units_are(
    words, places, run, monkeypatch
):
    monkeypatch.setattr(check, "has_systemd", lambda: True)
    places.accepted.parent.mkdir(parents=True, exist_ok=True)
    places.accepted.touch()
    network = {"mode": "names", "allow": ["https://api.example.com/"]}
    write_servers(places, {**SMALL, "network": network})

    status, out, err = run("check", *words)

    assert status == 65
    assert "$.servers[0].network.allow[0]" in out
    assert "such as api.example.com" in out
    assert "the egress proxy" not in out + err


def test_check_names_a_variable_of_opentelemetrys_that_cannot_be_done(places, run, monkeypatch):
    write_servers(places, SMALL)
    write_text(places.host_toml, '[tracing]\nendpoint = "http://localhost:4318"\n')
    assert run("check")[0] == 0

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    status, out, _ = run("check")

    assert status == 65
    assert out == "environment: OTEL_EXPORTER_OTLP_PROTOCOL: allowed is http/json\n"


def test_check_of_a_directory_that_is_not_there_is_66(run, places):
    status, _, err = run("check", "--config-dir=/no/such/place")

    assert (status, "/no/such/place" in err) == (66, True)


def test_check_tells_of_a_broken_file_of_tokens(places, run):
    places.tokens_d.mkdir(parents=True)
    write_text(places.tokens_d / "time.json", "{")

    status, out, _ = run("check")

    assert status == 65
    assert "time.json" in out


def test_a_terminal_gets_no_control_characters_from_a_file(places, run):
    write_text(places.servers_d / "\x1b[31m.json", "{")

    _, out, _ = run("check")

    assert "\x1b" not in out
    assert "\\x1b[31m.json" in out


def test_an_added_server_has_a_token_that_is_printed_once_and_in_its_header_file(places, run):
    words = ("--env", "A=b=c", "--tool-allow", "read_*", "--warm", "--", "npx", "-y", "x", "--a")

    status, out, _ = run("add", "acme.web.files", *words)

    assert status == 0
    shown = dict(line.split(maxsplit=1) for line in out.splitlines())
    header = places.headers_d / "acme.web.files"
    assert shown["path"] == "/t/acme/p/web/s/files/mcp"
    assert shown["header"] == str(header)
    assert header.read_text(encoding="ascii") == f"Authorization: Bearer {shown['token']}\n"
    (record,) = TokenStore(places.tokens_d).list("acme.web.files")
    assert record.sha256 == digest_of(shown["token"])
    (spec,) = load(places).servers
    assert spec.command == ("npx", "-y", "x", "--a")
    assert (spec.env, spec.tools.allow, spec.warm) == ({"A": "b=c"}, ("read_*",), True)


def test_a_path_in_the_command_is_visible_only_if_it_is_given_and_add_says_so(
    places, run, tmp_path
):
    command = ("--", "/bin/cat", str(tmp_path / "kept"), "/no/such/path")
    (tmp_path / "kept").touch()

    _, _, err = run("add", "blind", *command)
    assert f"{tmp_path}/kept is not visible" in err
    assert "/no/such/path" not in err

    _, _, err = run("add", "seeing", "--read", str(tmp_path), "--write", "/srv", *command)
    assert "not visible" not in err
    (server,) = json.loads((places.servers_d / "seeing.json").read_text())["servers"]
    assert server["paths"] == {"read": [str(tmp_path)], "write": ["/srv"]}


def test_tenant_and_project_may_be_options(places, run):
    assert run("add", "files", "--tenant", "acme", "--project", "web", "--", "x")[0] == 0

    assert [spec.instance for spec in load(places).servers] == ["acme.web.files"]


def test_a_second_command_end_belongs_to_the_server(places, run):
    run("add", "files", "--", "x", "--", "y")

    assert load(places).servers[0].command == ("x", "--", "y")


def test_tokens_of_an_earlier_server_of_the_name_are_not_let_in_again(places, run):
    old, _ = TokenStore(places.tokens_d).new("files")

    run("add", "files", "--", "x")

    digests = [record.sha256 for record in TokenStore(places.tokens_d).list("files")]
    assert len(digests) == 1
    assert digest_of(old) not in digests


def test_a_refused_server_leaves_no_file_and_no_token(places, run):
    status, out, err = run("add", "files", "--cwd", "/no/such/place", "--", "x")

    assert (status, out) == (64, "")
    assert '--cwd: "/no/such/place": allowed is a directory that exists' in err
    assert not places.tokens_d.exists()
    assert list(places.servers_d.iterdir()) == []


def test_removing_takes_the_tokens_and_the_header_file_of_that_server_only(places, run):
    for name in ("git", "git-admin"):
        run("add", name, "--", "x")

    assert run("remove", "git")[0] == 0

    assert sorted(path.name for path in places.tokens_d.iterdir()) == ["git-admin.json"]
    assert [path.name for path in places.headers_d.iterdir()] == ["git-admin"]
    assert [spec.name for spec in load(places).servers] == ["git-admin"]


@pytest.mark.parametrize("purge", [False, True])
def test_only_purging_deletes_the_data(places, run, purge):
    run("add", "acme.web.files", "--", "x")
    run("add", "acme.files", "--", "x")
    for name in ("acme.web.files", "acme.files"):
        directory = places.server_dir(parse_instance(name))
        directory.mkdir(parents=True)
        write_text(directory / "data", "x")

    run("remove", "acme.web.files", *(["--purge"] if purge else []))

    assert places.server_dir(parse_instance("acme.web.files")).exists() is not purge
    assert (places.state_dir / "acme" / "web").exists() is not purge
    assert (places.server_dir(parse_instance("acme.files")) / "data").exists()


def test_disabling_and_enabling_say_which_file_changed(places, run):
    write_servers(places, SMALL)

    status, _, err = run("disable", "time")
    assert (status, str(places.servers_json) in err) == (0, True)
    assert load(places).enabled == ()

    run("enable", "time")
    assert len(load(places).enabled) == 1
    assert "already" in run("enable", "time")[2]


@pytest.mark.parametrize("verb", ["remove", "enable", "disable"])
def test_a_server_that_is_not_there_is_66_and_the_others_are_named(places, run, verb):
    write_servers(places, SMALL)

    status, _, err = run(verb, "tim")

    assert status == 66
    assert "there is no server tim; there are time" in err


def test_list_shows_what_is_configured_when_no_proxy_runs(places, run):
    write_servers(places, SMALL, {**SMALL, "name": "off", "tenant": "acme", "enabled": False})

    status, out, err = run("list")
    rows = [line.split() for line in out.splitlines()]

    assert status == 0
    assert "no proxy runs" in err
    assert rows[1] == ["time", "-", "-", "-", "-", "/t/default/s/time/mcp"]
    assert rows[2] == ["acme.off", "disabled", "-", "-", "-", "/t/acme/s/off/mcp"]
    assert json.loads(run("list", "--json")[1])["running"] is False


def test_list_of_a_wrong_configuration_shows_the_right_ones_and_the_mistakes(places, run):
    write_servers(places, SMALL, {**SMALL, "name": "b", "warm": 1})

    status, out, err = run("list")

    assert status == 65
    assert "time" in out
    assert "$.servers[1].warm" in err


def test_a_table_is_aligned(capsys):
    print_table(["A", "LONG"], [["long cell", "x"], ["y", "z"]])

    assert capsys.readouterr().out == "A          LONG\nlong cell  x\ny          z\n"


def test_only_the_last_column_is_cut_to_the_width_and_never_to_nothing(capsys):
    print_table(["A", "TEXT"], [["12345678", "x" * 40]], columns=20)
    print_table(["A", "TEXT"], [["12345678", "x" * 40]], columns=40)

    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == f"12345678  {'x' * 19}…"
    assert lines[3] == f"12345678  {'x' * 29}…"


def test_the_schema_and_its_page_are_printed(run):
    assert json.loads(run("schema")[1])["required"] == ["version"]
    assert run("schema", "--markdown")[1].startswith("# Configuration\n")


def test_without_the_right_to_write_the_status_is_77(places, run, monkeypatch):
    def denied(_path: Places, *_args: object, **_kwargs: object) -> None:
        raise PermissionError(13, "Permission denied", str(places.servers_d))

    # As root nothing is denied; the kernel's answer is the one thing made up here.
    monkeypatch.setattr("autobot_mcp_bridge.config.edit.replace_file", denied)

    status, _, err = run("add", "files", "--", "x")

    assert (status, "Permission denied" in err) == (77, True)
