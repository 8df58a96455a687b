"""What clients write, as their public documentation shows it, imported: nothing lost, no secret out.

The files were written for these tests in the shapes of the clients' documentation. Every secret in
them holds SENTINEL and a number of its own.
"""

import json
from collections import Counter

import pytest

from autobot_mcp_bridge.config.load import load
from autobot_mcp_bridge.connect.imported.document import parse
from autobot_mcp_bridge.connect.imported.shapes import entries
from autobot_mcp_bridge.diagnosis.secret_values import forms
from connect.importing import FILES, MANIFEST, MARK, SENTINEL, UPSTREAMS, host_in, imported, run

CLIENTS = Counter(client for client, _ in MANIFEST.values())
NESTED = ("env", "envs", "headers", "http_headers", "env_http_headers")


def expected(word):
    """What the manifest says of an entry, before and after upstreams can be had."""
    if word.endswith("upstream"):
        first = word.split()[0] if " " in word else "added"
        return first if UPSTREAMS else "skipped"
    return word


def keys_of(data):
    """Every key of an entry that has to be accounted for."""
    for key, value in data.items():
        yield key
        if key in NESTED and isinstance(value, dict):
            yield from (f"{key}.{name}" for name in value)


def unaccounted(file, told):
    """Entries and keys of a file that the report says nothing of."""
    raws = entries(parse((FILES / file).read_bytes(), file), file)
    by_place = {each["where"]: each for each in told}
    missing = [raw.where for raw in raws if raw.where not in by_place]
    for raw in raws:
        entry = by_place.get(raw.where)
        if entry is None or entry["what"] == "skipped":
            continue
        known = {*entry["became"], *entry["left_out"]}
        known |= {key for key in keys_of(raw.data) if "args" in known and key == "config"}
        if entry["definition"] and "url" in entry["definition"]:
            known |= {key for key in keys_of(raw.data) if key.startswith("env.")}
        missing += [f"{raw.where}.{key}" for key in keys_of(raw.data) if key not in known]
    return missing


def sentinels(file):
    return SENTINEL.findall((FILES / file).read_text(encoding="utf-8"))


def leaked(file, text):
    """The sentinels of the file that the text holds, however encoded."""
    marks = {*MARK.findall((FILES / file).read_text(encoding="utf-8"))}
    found = {mark for mark in marks if mark in text}
    whole = [each for each in sentinels(file) if any(form in text for form in forms([each]))]
    return sorted(found | {*whole})


def test_the_files_are_of_every_client_and_the_manifest_knows_each():
    names = {path.name for path in FILES.iterdir()} - {"manifest.json"}
    named = ("Claude Desktop", "Claude Code", "VS Code", "Cursor", "Windsurf", "Codex")

    assert names == MANIFEST.keys()
    assert all(CLIENTS[client] >= 2 for client in (*named, "Gemini CLI", "Continue", "Goose"))


def test_every_entry_of_every_file_is_imported_or_told_and_no_secret_gets_out(
    tmp_path, monkeypatch, capsys, record_property
):
    missing, out, changed, stored = [], [], [], 0
    for number, (file, (_, wanted)) in enumerate(MANIFEST.items()):
        host = host_in(tmp_path / str(number), monkeypatch)
        before = host.tree()

        told = imported(host, capsys, str(FILES / file), "--no-tokens")

        missing += unaccounted(file, told)
        assert {each["entry"] for each in told} == {name.strip() for name in wanted}
        whats = [expected(word) for word in wanted.values()]
        assert [each["what"] for each in told] == whats, file
        out += leaked(file, host.outside())
        stored += len(host.stored())
        assert load(host.places).problems == ()
        first = host.tree()
        assert first == before if not host.servers() else first != before  # the first one writes
        again = imported(host, capsys, str(FILES / file), "--no-tokens")
        changed += [name for name in host.tree() if host.tree()[name] != first.get(name)]
        kept = ["skipped" if what == "skipped" else "unchanged" for what in whats]
        assert [each["what"] for each in again] == kept, file
        run(host, capsys, str(FILES / file), "--dry-run")
        out += leaked(file, host.outside())
    record_property("files", len(MANIFEST))
    record_property("entries_unaccounted", len(missing))
    record_property("sentinels_outside_the_store", len(out))
    record_property("changed_by_a_second_import", len(changed))
    assert stored >= 20  # so that a store that takes nothing would be seen
    assert (missing, out, changed) == ([], [], [])


def test_every_secret_of_a_served_entry_is_in_the_store_as_the_file_has_it(
    tmp_path, monkeypatch, capsys
):
    host = host_in(tmp_path, monkeypatch)

    imported(host, capsys, str(FILES / "cline-settings.json"))

    assert host.stored()["jira-api-token"] == "ATATT3xSENTINEL2001abcdef"
    secret = host.stored()["aws-secret-access-key"]
    assert secret == "SENTINEL2003/bPxRfiCYEXAMPLEKEY+abcdefgh"
    document = json.loads(host.stored()["key-service-account"])
    assert "SENTINEL2005" in document["private_key"]
    assert host.servers()["aws"]["credentials"] == {
        "AWS_ACCESS_KEY_ID": "aws-access-key-id",
        "AWS_SECRET_ACCESS_KEY": "aws-secret-access-key",
    }
    assert host.servers()["aws"]["env"] == {"AWS_REGION": "eu-central-1"}


@pytest.mark.parametrize("file", MANIFEST)
def test_without_units_no_secret_is_written_anywhere_and_each_is_named(
    file, tmp_path, monkeypatch, capsys
):
    host = host_in(tmp_path, monkeypatch, units=False)

    told = imported(host, capsys, str(FILES / file))

    assert leaked(file, host.outside()) == []
    assert not host.places.encrypted_credentials.exists()
    assert not any("credentials" in each for each in host.servers().values())
    for entry in told:
        if "only units of systemd" in entry["why"]:
            assert entry["definition"] is None
    assert load(host.places).problems == ()


def test_an_entry_with_a_secret_is_skipped_without_units_and_the_one_beside_it_is_not(
    tmp_path, monkeypatch, capsys
):
    host = host_in(tmp_path, monkeypatch, units=False)

    status = run(host, capsys, str(FILES / "claude-desktop-usual.json"))

    assert status == 1
    assert "GITHUB_PERSONAL_ACCESS_TOKEN" in host.out
    assert host.servers().keys() == {"filesystem", "google-drive", "fetch"}


def test_a_secret_in_argv_leaves_a_disabled_server_with_the_secret_as_a_variable(
    tmp_path, monkeypatch, capsys
):
    host = host_in(tmp_path, monkeypatch)

    told = imported(host, capsys, str(FILES / "claude-desktop-argv.json"))

    by_name = {each["entry"]: each for each in told}
    search = host.servers()["search"]
    assert search["enabled"] is False
    assert search["command"][-3:] == ["--api-key=<API_KEY>", "--max-results", "5"]
    assert host.stored()[search["credentials"]["API_KEY"]] == "tvly-SENTINEL0202abcdef"
    assert 'behind "--api-key"' in by_name["search"]["to_do"][0]
    assert host.servers()["slack"].get("enabled", True) is True


def test_the_table_says_of_each_disabled_entry_why(tmp_path, monkeypatch, capsys):
    host = host_in(tmp_path, monkeypatch)
    file = tmp_path / "f.json"
    waits = {"command": "npx", "args": ["-y", "p", "${HOME}"]}
    off = {"command": "npx", "args": ["-y", "p"], "disabled": True}
    file.write_text(json.dumps({"mcpServers": {"waits": waits, "off": off}}), encoding="utf-8")

    assert run(host, capsys, "--dry-run", str(file)) == 1
    table = host.out.partition("\n\n")[0].splitlines()
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in table[1:]}
    assert rows == {
        "waits": ["disabled", "it waits for what is to do, below"],
        "off": ["disabled", "the file has it disabled"],
    }


def test_placeholders_become_secrets_to_be_set_or_questions_and_a_value_answers_them(
    tmp_path, monkeypatch, capsys
):
    file = str(FILES / "vscode-mcp.json")
    host = host_in(tmp_path, monkeypatch)

    told = {each["entry"]: each for each in imported(host, capsys, file)}

    weather = host.servers()["weather"]
    assert weather["command"] == ["npx", "-y", "weather-mcp", "--units", "metric"]
    assert told["weather"]["to_do"] == [
        "mcp-bridge secret set weather-api-key  (${input:weather-key} of the file)"
    ]
    assert told["forecast"]["to_do"] == ["import again with --set city=VALUE, for its command"]
    assert any("envFile" in text for text in told["playwright"]["to_do"])
    host.store.put("weather-api-key", b"set by hand", (), there=False)
    answered = imported(host, capsys, file, "--set", "city=Oslo", "--replace")
    told = {each["entry"]: each for each in answered}
    assert told["weather"]["to_do"] == []
    assert told["forecast"]["what"] == "changed"
    assert host.servers()["forecast"]["command"][-1] == "Oslo"
    assert host.stored()["weather-api-key"] == "set by hand"
