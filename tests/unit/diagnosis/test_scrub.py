"""What leaves the host is without secrets, and still of use."""

import json

import pytest

from autobot_mcp_bridge.diagnosis.support.scrub import Scrubber, scrubbed, secrets_in

SERVER = {
    "name": "files",
    "command": [
        "/usr/bin/serve",
        "--api-key",
        "key-in-argv",
        "--password=pass-in-argv",
        "--port",
        "1",
    ],
    "env": {"LOG_LEVEL": "debug", "GITHUB_PAT": "value-in-env"},
    "headers": {"X-Any": "value-of-header"},
    "credentials": {"GITHUB_TOKEN": "github-acme"},
    "tokens_sha256": ["0123456789abcdef" * 4],
}
SECRETS = ["key-in-argv", "pass-in-argv", "value-in-env", "value-of-header"]


def test_a_definition_keeps_its_shape_and_loses_its_secrets():
    text = json.dumps(scrubbed({"servers": [SERVER]}), ensure_ascii=False)

    assert [secret for secret in SECRETS if secret in text] == []
    for kept in ("debug", "github-acme", "GITHUB_PAT", "--api-key", "--port", "01234567…"):
        assert kept in text
    assert "89abcdef" not in text


def test_each_of_them_is_known_for_the_other_files():
    assert sorted(secrets_in({"servers": [SERVER]})) == sorted(SECRETS)


@pytest.mark.parametrize(
    "line",
    [
        "Authorization: Basic c2VjcmV0Og==",
        "authorization=Bearer c2VjcmV0Og==",
        '{"Authorization": "Bearer c2VjcmV0Og=="}',
        "Set-Cookie: session=c2VjcmV0Og==; Path=/",
        "https://user:c2VjcmV0Og==@host/path",
        "the value is known-value-c2VjcmV0Og==",
        "X-Api-Key: c2VjcmV0Og==",
    ],
)
def test_a_line_of_a_log_loses_what_it_tells(line):
    assert "c2VjcmV0Og==" not in Scrubber(["known-value-c2VjcmV0Og=="]).text(line)


def test_other_lines_stay():
    line = "2026-01-01 files: it exited with status 3"
    assert Scrubber(["nothing-of-that"]).text(line) == line


def test_a_unit_keeps_harmless_variables_only():
    unit = (
        '[Service]\nEnvironment="MCP_BRIDGE_ENV_LOG_LEVEL=debug"\n'
        'Environment="MCP_BRIDGE_ENV_PAT=value in a unit"\nMemoryMax=1G\n'
    )
    text = Scrubber([]).unit(unit)

    assert "LOG_LEVEL=debug" in text
    assert "value in a unit" not in text
    assert "PAT=" in text
    assert "MemoryMax=1G" in text


def test_what_is_no_json_is_refused_and_not_passed_on():
    with pytest.raises(ValueError, match="Expecting"):
        Scrubber([]).document('{"env": {"PAT": "x"')
