"""`mcp-bridge add NAME --url URL`."""

import json

import pytest

URL = "https://mcp.example.com/mcp"


def added(places):
    (file,) = places.servers_d.glob("*.json")
    (server,) = json.loads(file.read_text(encoding="utf-8"))["servers"]
    return server


def test_a_remote_server_is_added_with_its_headers(run, places):
    status, out, _ = run("add", "far", "--url", URL, "--header", "X-Team=web=1")

    assert status == 0
    assert "/t/default/s/far/mcp" in out
    assert added(places) == {"name": "far", "url": URL, "headers": {"X-Team": "web=1"}}


@pytest.mark.parametrize(
    ("given", "entry"),
    [
        ("Authorization=Bearer key", {"credential": "key", "prefix": "Bearer "}),
        ("X-Key=key", {"credential": "key"}),
    ],
)
def test_a_header_from_a_secret_is_named_with_what_stands_before_it(run, places, given, entry):
    places.state_dir.mkdir()
    places.accepted.write_text("")  # servers become units
    status, _, err = run("add", "far", "--url", URL, "--header-secret", given)

    assert status == 0, err
    assert list(added(places)["headers"].values()) == [entry]


@pytest.mark.parametrize(
    "words",
    [[], ["--url", URL, "--", "uvx", "x"], ["--url", URL, "--header", "X"], ["--url", "ftp://a/"]],
)
def test_neither_both_and_what_is_no_header_are_refused_and_nothing_is_written(run, places, words):
    status, _, err = run("add", "far", *words)

    assert status in (64, 65)
    assert "allowed" in err
    assert not list(places.servers_d.glob("*.json"))
