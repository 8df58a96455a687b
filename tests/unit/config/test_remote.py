"""Servers by url: what their definition may hold, each refusal beside what is right."""

import pytest

from support.configured import loaded_from, places_in, told

URL = "https://mcp.example.com/mcp"
LISTED = {"mode": "list", "allow": ["10.1.0.0/16"]}


@pytest.fixture
def places(tmp_path):
    return places_in(tmp_path)


def entry(**keys):
    return {"name": "far", "url": URL, **keys}


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"headers": {"X-Team": "web"}},
        {"network": {"mode": "internet"}},
        {"url": "https://8.8.8.8:8443/mcp?tenant=a"},
        {"url": "http://10.1.2.3/mcp", "network": LISTED},
        {"url": "http://tracker.lan:8080/mcp", "network": LISTED},
        {"network": {"mode": "names", "allow": ["*.example.com"]}},
        {"limits": {"memory": "128M"}, "tools": {"allow": ["a"]}, "sessions": "isolated"},
    ],
)
def test_what_is_right_is_taken(places, keys):
    assert told(loaded_from(places, entry(**keys))) == {}


@pytest.mark.parametrize(
    ("keys", "path", "clause"),
    [
        ({"command": ["uvx", "x"]}, "url", "either url or command"),
        ({"url": "ftp://a.example/"}, "url", "allowed is https"),
        ({"url": "https://user:pw@a.example/"}, "url", "allowed is https"),
        ({"url": "https://a.example/#x"}, "url", "allowed is https"),
        ({"url": "https://a.example:port/"}, "url", "allowed is https"),
        ({"url": "https://ä.example/"}, "url", "allowed is https"),
        ({"url": "http://a.example/mcp"}, "url", "http is for private addresses only"),
        ({"url": "https://127.0.0.1/mcp"}, "url", "network.mode list"),
        ({"url": "https://[::ffff:10.0.0.1]/mcp"}, "url", "network.mode list"),
        ({"url": "https://169.254.169.254/mcp"}, "url", "network.mode list"),
        ({"url": "http://10.2.0.1/mcp", "network": LISTED}, "url", "network.mode list"),
        ({"network": {"mode": "none"}}, "network.mode", "keeps it from its url"),
        ({"network": {"mode": "loopback"}}, "network.mode", "keeps it from its url"),
        (
            {"network": {"mode": "names", "allow": ["a.example.net"]}},
            "url",
            "network.allow has to list mcp.example.com:443",
        ),
        ({"headers": {"Host": "a"}}, "headers.Host", "the transport has it"),
        ({"headers": {"mcp-session-id": "a"}}, 'headers["mcp-session-id"]', "the transport"),
        ({"headers": {"X-A": "1", "x_a": "2"}}, "headers.x_a", "the same as X-A"),
        ({"headers": {"X A": "1"}}, 'headers["X A"]', "a header's name"),
        ({"headers": {"X": "a\nb"}}, "headers.X", "one line of ASCII"),
        ({"headers": {"X": {"credential": "NO"}}}, "headers.X.credential", "1 to 32 of"),
        ({"headers": {"X": {"prefix": "Bearer "}}}, "headers.X", "with credential"),
        ({"headers": {"X": {"value": "x"}}}, "headers.X", "credential, prefix"),
        *(
            ({key: value}, key, "about a program")
            for key, value in {
                "env": {"A": "b"},
                "paths": {"read": ["/srv"]},
                "profile": "node",
                "cwd": "/tmp",
            }.items()
        ),
    ],
)
def test_what_cannot_work_is_refused_with_its_place(places, keys, path, clause):
    found = told(loaded_from(places, entry(**keys)))

    assert list(found) == [f"$.servers[0].{path}"]
    assert clause in found[f"$.servers[0].{path}"]


def test_headers_are_for_a_server_with_url(places):
    found = told(loaded_from(places, {"name": "a", "command": ["a"], "headers": {"X": "y"}}))

    assert list(found) == ["$.servers[0].headers"]


def test_a_header_from_a_secret_needs_a_unit(places):
    secret = entry(headers={"Authorization": {"credential": "key", "prefix": "Bearer "}})
    assert "only a unit of systemd" in next(iter(told(loaded_from(places, secret)).values()))

    places.state_dir.mkdir()
    places.accepted.write_text("")
    assert told(loaded_from(places, secret)) == {}


def test_no_mistake_shows_a_url_or_a_header(places):
    loaded = loaded_from(
        places, entry(url="http://a.example/?key=sesame", headers={"X": "sesame\n"})
    )

    assert loaded.problems
    assert not any("sesame" in str(problem) for problem in loaded.problems)
