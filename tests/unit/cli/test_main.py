import json
import os

import pytest

from autobot_mcp_bridge import __version__
from autobot_mcp_bridge.cli.main import COMMANDS, main
from support.configured import SMALL, write_servers, write_text


def test_the_version_is_told_without_the_slow_imports(run_apart):
    ended = run_apart("--version", python=("-X", "importtime"))

    assert ended.stdout == f"mcp-bridge {__version__}\n"
    imported = {
        line.rpartition("|")[2].strip().partition(".")[0] for line in ended.stderr.split("\n")
    }
    assert "argparse" in imported
    assert not imported & {"pydantic", "pydantic_core", "aiohttp", "asyncio"}


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_is_in_the_help(capsys, command):
    with pytest.raises(SystemExit) as end:
        main(["--help"])

    assert end.value.code == 0
    assert f"\n    {command} " in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("nonsense",),
        ("list", "--nonsense"),
        ("token", "revoke", "files"),
        ("token", "new", "files", "--expires", "soon"),
        ("add", "files"),
        ("add", "files", "--"),
        ("add", "a.b.c.d", "--", "x"),
        ("add", "a.files", "--tenant", "b", "--", "x"),
        ("add", "Files", "--", "x"),
        ("add", "files", "--env", "A", "--", "x"),
        ("list", "--", "x"),
        ("call", "files", "tool", "[1]"),
        ("call", "files", "tool", "{"),
        ("call", "files", "tool", "--timeout", "0"),
    ],
)
def test_wrong_usage_is_status_64_with_one_sentence(run, words):
    status, out, err = run(*words)

    assert (status, out) == (64, "")
    assert "mcp-bridge" in err


def test_the_places_may_stand_before_or_after_the_command(places, options, capsys):
    write_servers(places, SMALL)

    assert main([*options, "check"]) == 0
    assert main(["check", *options]) == 0
    assert main([options[0], "check", *options[1:]]) == 0
    assert capsys.readouterr().out.count("1 server is right") == 3


def test_the_places_of_a_running_proxy_are_taken_and_it_is_said(places, tmp_path, capsys):
    write_servers(places, SMALL)
    places.runtime_dir.mkdir()
    endpoint = {
        "pid": os.getpid(),
        "config_dir": str(places.config_dir),
        "state_dir": str(places.state_dir),
    }
    write_text(places.endpoint_file, json.dumps(endpoint))

    status = main(["check", f"--runtime-dir={places.runtime_dir}"])

    assert status == 0
    assert f"using the running proxy's {places.config_dir}" in capsys.readouterr().err


@pytest.mark.parametrize("pid", [2**22 + 1, 0, -1, 2**70, "1"])
def test_a_proxy_that_does_not_run_is_not_followed(places, tmp_path, capsys, monkeypatch, pid):
    places.runtime_dir.mkdir()
    endpoint = {"pid": pid, "config_dir": str(places.config_dir)}
    write_text(places.endpoint_file, json.dumps(endpoint))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setattr(os, "geteuid", lambda: 12345)

    assert main(["check", f"--runtime-dir={places.runtime_dir}"]) == 66


def test_a_given_place_wins_over_a_running_proxy(places, tmp_path, capsys):
    places.runtime_dir.mkdir()
    endpoint = {"pid": os.getpid(), "config_dir": "/no/such/place"}
    write_text(places.endpoint_file, json.dumps(endpoint))

    assert main(
        ["check", f"--config-dir={places.config_dir}", f"--runtime-dir={places.runtime_dir}"]
    ) == 0  # fmt: skip


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_the_directories_stand_anywhere_before_and_behind_a_verb(place, places, capsys):
    write_servers(places, SMALL)
    words = ["token", "list", "time"]
    words[place:place] = [
        f"--config-dir={places.config_dir}",
        f"--state-dir={places.state_dir}",
        f"--runtime-dir={places.runtime_dir}",
    ]

    assert main(words) == 0
    assert "LABEL" in capsys.readouterr().out
