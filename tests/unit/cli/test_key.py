import json

import pytest

from autobot_mcp_bridge.config.digests import digest_of
from autobot_mcp_bridge.config.keys import KeyStore, write_uses
from support.configured import SMALL, write_servers

AGENT = ("--agent-id", "a1", "--agent-type", "coder")


@pytest.fixture(autouse=True)
def _configured(places):
    write_servers(
        places, {**SMALL, "tenant": "acme"}, {**SMALL, "tenant": "acme", "project": "web"}
    )


def test_new_prints_the_key_and_nothing_else_on_stdout(places, run):
    roles = ("--role", "tenant_admin", "--role", "member")
    status, out, err = run(
        "key", "new", "acme", *AGENT, "--project", "web", *roles, "--expires", "1d"
    )

    (record,) = KeyStore(places.keys_d).list("acme")
    assert (status, err) == (0, "")
    assert record.sha256 == digest_of(out.strip())
    assert (record.project, record.agent_id, record.agent_type) == ("web", "a1", "coder")
    assert record.roles == ("tenant_admin", "member")
    assert record.expires == pytest.approx(record.created + 86400, abs=60)


@pytest.mark.requirement("SM-01")
@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "--agent-id and --agent-type"),
        (("--agent-id", "a1"), "--agent-type"),
        (("--agent-id", " ", "--agent-type", "coder"), "--agent-id"),
    ],
)
def test_a_key_names_its_agent_and_what_is_missing_is_told_at_once(places, run, words, named):
    status, out, err = run("key", "new", "acme", *words)

    assert (status, out) == (64, "")
    assert f"missing: {named}\n" in err
    assert not places.keys_d.exists()


def test_there_is_no_key_for_a_tenant_without_servers(run):
    status, out, err = run("key", "new", "acne", *AGENT)

    assert (status, out) == (66, "")
    assert "there are servers of acme" in err


def test_a_project_without_servers_is_told_and_its_key_is_made(run):
    status, out, err = run("key", "new", "acme", *AGENT, "--project", "shop")

    assert status == 0
    assert out.startswith("mcpk_")
    assert "no server of project shop yet" in err


def test_the_list_never_holds_a_key_or_its_digest_and_shows_the_last_use(places, run):
    key = json.loads(run("key", "new", "acme", *AGENT, "--json")[1])
    write_uses(places.key_uses, {"acme": {key["id"]: 1700000000}})

    table, as_json = run("key", "list", "acme")[1], run("key", "list", "acme", "--json")[1]

    for text in (table, as_json):
        assert key["key"] not in text
        assert digest_of(key["key"]) not in text
        assert "2023-11-14T22:13:20+00:00" in text
    assert json.loads(as_json)["keys"][0]["used"] == "2023-11-14T22:13:20+00:00"


def test_rotate_prints_another_key_of_the_same_id(places, run):
    first = json.loads(run("key", "new", "acme", *AGENT, "--json")[1])
    second = json.loads(run("key", "rotate", "acme", first["id"], "--overlap", "0s", "--json")[1])

    assert second["id"] == first["id"]
    assert second["key"] != first["key"]
    shown = json.loads(run("key", "list", "acme", "--json")[1])["keys"]
    assert [key["counts"] for key in shown] == ["no", "yes"]


def test_revoking_is_for_the_exact_key(places, run):
    ids = [json.loads(run("key", "new", "acme", *AGENT, "--json")[1])["id"] for _ in range(3)]

    assert run("key", "revoke", "acme", ids[0])[0] == 0
    assert run("key", "revoke", "acme", ids[0])[0] == 66
    assert json.loads(run("key", "revoke", "acme", "--all", "--json")[1])["revoked"] == ids[1:]
    assert KeyStore(places.keys_d).list("acme") == []


def test_check_tells_of_a_broken_file_of_keys(places, run):
    run("key", "new", "acme", *AGENT)
    (places.keys_d / "acme.json").write_text("{", encoding="utf-8")

    status, out, _ = run("check")

    assert status == 65
    assert f"{places.keys_d}/acme.json" in out
