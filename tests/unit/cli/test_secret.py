"""Who cannot have secrets, and what the command line says of it; the rest needs systemd."""

import pytest

from autobot_mcp_bridge.cli import secret
from autobot_mcp_bridge.cli.main import main


@pytest.mark.parametrize("words", [["list"], ["set", "word"], ["rotate", "word"], ["rm", "word"]])
@pytest.mark.parametrize(
    ("systemd", "uid", "status", "told"),
    [(False, 0, 69, "does not run systemd"), (True, 1000, 77, "secrets are root's")],
)
def test_where_no_unit_could_be_given_one_each_verb_says_why(
    words, systemd, uid, status, told, monkeypatch, capsys
):
    monkeypatch.setattr(secret, "has_systemd", lambda: systemd)
    monkeypatch.setattr("os.geteuid", lambda: uid)

    assert main(["secret", *words]) == status
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["set", "rotate"])
def test_a_value_in_the_command_line_is_refused_and_not_repeated(verb, capsys):
    assert main(["secret", verb, "word", "a-value"]) == 64

    said = capsys.readouterr().err
    assert "never stands in the command line" in said and "a-value" not in said


def test_a_terminal_may_send_bytes_that_are_no_utf_8(monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("getpass.getpass", lambda _prompt: "caf\udce9")

    assert secret._value("word") == b"caf\xe9"
