"""What leaves the host is without secrets, and still of use."""

import base64
import json
import os
import time
from urllib.parse import quote, quote_plus

import pytest

from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.diagnosis.secret_values import forms
from autobot_mcp_bridge.diagnosis.support.known import known_secrets
from autobot_mcp_bridge.diagnosis.support.scrub import Scrubber, secrets_in

SERVER = {
    "name": "files",
    "command": [
        "/usr/bin/serve",
        "--api-key",
        "key-in-argv",
        "--password=pass-in-argv",
        "--port",
        "1",
        "SOME_TOKEN=token-in-argv",
        "--dsn=postgres://user:password@in@argv@host/db",
    ],
    "env": {"LOG_LEVEL": "debug", "GITHUB_PAT": "value-in-env"},
    "headers": {"X-Any": "value-of-header"},
    "credentials": {"GITHUB_TOKEN": "github-acme"},
    "tokens_sha256": ["0123456789abcdef" * 4],
}
SECRETS = [
    "key-in-argv",
    "pass-in-argv",
    "token-in-argv",
    "password@in@argv",
    "value-in-env",
    "value-of-header",
]


def test_a_definition_keeps_its_shape_and_loses_its_secrets():
    text = Scrubber([]).document(json.dumps({"servers": [SERVER]}))

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
        "postgres://user:an@other@c2VjcmV0Og==@host/path",
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


KEY = ("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "BKcwggSjAgEAAoIBAQ/C7/a+b/c1/d2/", "9Q==")


def test_a_private_key_goes_line_by_line_and_what_is_around_it_stays():
    begin, end = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
    journal = [f"Jan 01 host one[7]: {line}" for line in ("before", begin, *KEY, end, "after")]

    shown = Scrubber([]).text("\n".join(journal)).splitlines()
    document = json.loads(Scrubber([]).document(json.dumps({"stderr": [begin, *KEY, end, "x"]})))

    assert [line for line in shown for part in KEY if part in line] == []
    assert [shown[0], *shown[-2:]] == [journal[0], *journal[-2:]]
    assert shown[2] == "Jan 01 host one[7]: «redacted»"
    assert document["stderr"] == [begin, *["«redacted»"] * 3, end, "x"]


def test_a_key_that_never_ends_takes_a_bounded_part():
    lines = ["-----BEGIN PRIVATE KEY-----", *["word by word"] * 500]

    assert Scrubber([]).text("\n".join(lines)).endswith("\nword by word")


def test_what_a_text_may_make_of_a_value_is_known_too():
    value = 'it is "quoted" & long\nand its second line'

    found = Scrubber(forms([value]))
    for text in (
        json.dumps({"said": value}),
        f"https://host/?q={quote(value, safe='')}",
        f"https://host/?q={quote_plus(value)}",
        f"Basic of {base64.b64encode(value.encode()).decode()}",
        value,
    ):
        shown = found.text(text)
        assert "quoted" not in shown
        assert "second" not in shown
        assert base64.b64encode(value.encode()).decode()[:30] not in shown


def test_files_that_credentials_name_and_what_installs_are_handed_is_known(tmp_path):
    places = Places(tmp_path / "config", tmp_path / "state", tmp_path / "run")
    places.config_dir.mkdir()
    (tmp_path / "key").write_text("value in a file of root's\n", encoding="utf-8")
    os.mkfifo(tmp_path / "pipe")
    credentials = {
        "KEY": {"file": str(tmp_path / "key")},
        "PIPE": {"file": str(tmp_path / "pipe")},
        "GONE": {"file": str(tmp_path / "gone")},
        "NAME": "github-acme",
    }
    server = {"name": "one", "command": ["/bin/cat"], "credentials": credentials}
    places.servers_json.write_text(json.dumps({"servers": [server]}), encoding="utf-8")
    proxy = 'LANG=C.UTF-8\nHTTPS_PROXY="http://me:proxy-password@proxy:1"\n'
    (places.config_dir / "environment").write_text(proxy, encoding="utf-8")

    known = known_secrets(places)
    assert {"value in a file of root's", "proxy-password"} <= {*known}
    assert "C.UTF-8" not in known


def test_many_values_cost_little_where_they_are_not():
    certificate = "\n".join(f"line number {n} of a long certificate" for n in range(50_000))
    values = [*forms([certificate])]
    assert len({*values}) < 3000

    found = Scrubber([*values, "line of the journal"])
    text = "line of the journal 12345678\n" * 20_000
    began = time.process_time()
    assert "line of" not in found.text(text)
    assert time.process_time() - began < 5.0
