"""Every stable word is explained, and the page says the same as the command."""

import json
from pathlib import Path

import pytest

from autobot_mcp_bridge.cli.main import main
from autobot_mcp_bridge.diagnosis.codes import ALL, CALLS, DEATHS, FINDINGS
from autobot_mcp_bridge.diagnosis.codes.page import markdown
from autobot_mcp_bridge.model.death import DeathCause
from autobot_mcp_bridge.model.errors import Cause
from autobot_mcp_bridge.model.finding import Finding

PAGE = Path(__file__).parents[3] / "docs" / "ERRORS.md"


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        (CALLS, [cause.word for cause in Cause]),
        (DEATHS, list(DeathCause)),
        (FINDINGS, list(Finding)),
    ],
)
def test_every_word_has_one_explanation_and_no_other_has(codes, words):
    assert sorted(code.word for code in codes) == sorted(words)


def test_no_word_means_two_things():
    assert len({code.word for code in ALL}) == len(ALL)


def test_every_explanation_says_what_why_what_to_do_and_where_to_look():
    texts = [text for code in ALL for text in code.as_data().values()]

    assert [text for text in texts if not text.strip() or "|" in text or text.endswith(".")] == []


def test_the_page_is_what_the_command_prints():
    assert PAGE.read_text(encoding="utf-8") == markdown()


def test_a_code_is_explained(capsys):
    assert main(["explain", "server_crashed"]) == 0

    said = capsys.readouterr().out
    assert said.startswith("server_crashed\n")
    assert "mcp-bridge logs NAME" in said


def test_without_a_code_all_are_listed(capsys):
    assert main(["explain", "--json"]) == 0

    assert [code["code"] for code in json.loads(capsys.readouterr().out)] == [c.word for c in ALL]


def test_an_unknown_code_is_told_with_those_that_may_be_meant(capsys):
    assert main(["explain", "server_crash"]) == 66

    assert "server_crashed" in capsys.readouterr().err
