import json

import pytest

from autobot_mcp_bridge.config.tokens import TokenStore, digest_of
from support.configured import SMALL, write_servers


@pytest.fixture(autouse=True)
def _configured(places):
    write_servers(places, SMALL, {**SMALL, "name": "time-admin"})


def test_new_prints_the_token_and_nothing_else_on_stdout(places, run):
    status, out, _ = run("token", "new", "time", "--label", "laptop", "--expires", "1d")

    (record,) = TokenStore(places.tokens_d).list("time")
    assert status == 0
    assert record.sha256 == digest_of(out.strip())
    assert record.label == "laptop"
    assert record.expires == pytest.approx(record.created + 86400, abs=60)
    assert not places.headers_d.exists()


def test_new_stores_the_header_file_where_it_is_asked_to(places, run):
    _, out, _ = run("token", "new", "time", "--write-header")

    header = (places.headers_d / "time").read_text(encoding="ascii")
    assert header == f"Authorization: Bearer {out.strip()}\n"


def test_the_list_never_holds_a_token_or_its_digest(places, run):
    _, token, _ = run("token", "new", "time")

    text = run("token", "list", "time")[1] + run("token", "list", "time", "--json")[1]

    assert token.strip() not in text
    assert digest_of(token.strip()) not in text


def test_rotation_tells_that_the_header_file_is_old(places, run):
    run("token", "new", "time", "--write-header")

    _, _, err = run("token", "rotate", "time", "--overlap", "10m")
    assert "--write-header" in err

    _, out, _ = run("token", "rotate", "time", "--json", "--write-header")
    assert json.loads(out)["token"] in (places.headers_d / "time").read_text(encoding="ascii")
    assert [r.expires is None for r in TokenStore(places.tokens_d).list("time")] == [
        False,
        False,
        True,
    ]


def test_revoking_is_for_the_exact_server(places, run):
    run("token", "new", "time")
    run("token", "new", "time-admin")

    status, out, _ = run("token", "revoke", "time", "--all", "--json")

    assert (status, len(json.loads(out)["revoked"])) == (0, 1)
    assert list(TokenStore(places.tokens_d).digests()) == ["time-admin"]


def test_one_token_is_revoked_by_its_id(places, run):
    ids = [json.loads(run("token", "new", "time", "--json")[1])["id"] for _ in range(2)]

    assert run("token", "revoke", "time", ids[0])[0] == 0
    assert run("token", "revoke", "time", ids[0])[0] == 66
    assert [r.id for r in TokenStore(places.tokens_d).list("time")] == ids[1:]


@pytest.mark.parametrize("verb", ["new", "rotate"])
def test_there_is_no_token_for_a_server_that_is_not_there(places, run, verb):
    status, out, err = run("token", verb, "tim")

    assert (status, out) == (66, "")
    assert "there is no server tim" in err
