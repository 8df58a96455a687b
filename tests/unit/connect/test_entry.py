"""One entry: what its words, variables, URL and other keys become."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.connect.imported.entry import draft_of
from autobot_mcp_bridge.connect.imported.launchers import IMAGES
from autobot_mcp_bridge.connect.imported.placeholders import Answers, Input
from autobot_mcp_bridge.connect.imported.shapes import Raw
from autobot_mcp_bridge.units.packages.specs import parse_command

TEXTS = st.text(st.characters(max_codepoint=0x24F), max_size=8)
KEYS = (
    st.sampled_from(
        [
            "command",
            "args",
            "env",
            "url",
            "serverUrl",
            "httpUrl",
            "type",
            "headers",
            "cwd",
            "timeout",
            "disabled",
            "tools",
            "envFile",
            "env_vars",
            "includeTools",
            "http_headers",
            "bearer_token_env_var",
            "config",
        ]
    )
    | TEXTS
)
WORDS = TEXTS | st.sampled_from(
    [
        "npx",
        "uvx",
        "docker",
        "run",
        "-e",
        "A=b",
        "mcp-remote",
        "--header",
        "env",
        "cmd",
        "/c",
        "-S",
        "https://x/y",
        "$X",
        "${X}",
        "%X%",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def draft(given=None, inputs=None, **data):
    return draft_of(Raw("a", ("mcpServers", "a"), data, inputs or {}), given or {})


@given(VALUES | st.dictionaries(KEYS, VALUES, max_size=6))
def test_whatever_an_entry_is_each_key_of_it_is_told(data):
    found = draft_of(Raw("a", ("mcpServers", "a"), data), {})

    if isinstance(data, dict):
        inner = {"config"} if "config" in found.became else set()
        assert {*data} - inner <= {*found.became, *found.left_out} or found.skipped
    else:
        assert found.skipped
    json.dumps([found.became, found.left_out, found.to_do, found.notes])


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["cmd", "/c", "npx", "-y", "x"], ["npx", "-y", "x"]),
        (["npx.cmd", "-y", "x"], ["npx", "-y", "x"]),
        (["/usr/local/bin/npx", "-y", "x"], ["npx", "-y", "x"]),
        (["bunx", "--bun", "x"], ["npx", "-y", "x"]),
        (["pnpm", "dlx", "x"], ["npx", "-y", "x"]),
        (["npm", "exec", "--yes", "--", "x"], ["npx", "-y", "x"]),
        (["pipx", "run", "x"], ["uvx", "x"]),
        (["uv", "tool", "run", "x"], ["uvx", "x"]),
        (["npx", "--quiet", "-y", "x"], ["npx", "-y", "x"]),
        (["env", "A=b", "uvx", "x"], ["uvx", "x"]),
        (
            ["docker", "run", "-i", "--rm", "-e", "A=b", "mcp/time", "-v"],
            [*IMAGES["mcp/time"], "-v"],
        ),
        (["python3", "-m", "server"], ["python3", "-m", "server"]),
    ],
)
def test_launchers_become_words_that_are_understood_here(words, command):
    found = draft(command=words[0], args=words[1:])

    assert (found.command, found.skipped) == (command, "")


@pytest.mark.parametrize("command", IMAGES.values(), ids=IMAGES)
def test_each_image_that_is_known_is_a_package(command):
    assert parse_command(command) is not None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["docker", "run", "-i", "-v", "/a:/b", "mcp/time"], "it runs a container"),
        (["podman", "run", "ghcr.io/x/y"], "unpack ghcr.io/x/y"),
        (["docker", "mcp", "gateway", "run"], "it runs a container"),
        (["C:\\Python\\python.exe", "x.py"], "a path of Windows"),
        (["env", "-u", "A", "uvx"], "env -u is not understood"),
        (["env", "A=b"], "no program is left"),
        (["env", "-S", "A='b"], "quotes have no end"),
        (["npx 'x"], "quotes have no end"),
        (["./server"], "relative path"),
        (["npx", "mcp-remote"], "has no URL"),
        (["npx", "mcp-remote", "https://x/y", "--transport", "sse-only"], "SSE alone"),
    ],
)
def test_a_command_that_cannot_be_had_is_told(words, told):
    assert told in draft(command=words[0], args=words[1:]).skipped


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["x", "--api-key", "abc"], ["x", "--api-key", "<API_KEY>"]),
        (["x", "--apiKey=abc", "y"], ["x", "--apiKey=<APIKEY>", "y"]),
        (["x", "-H", "Authorization: Bearer abc"], ["x", "-H", "Authorization: <AUTHORIZATION>"]),
        (["x", "--header=X-Api-Key:abc"], ["x", "--header=X-Api-Key:<X_API_KEY>"]),
        (["x", "mongodb://u:p@h"], ["x", "<ARGUMENT_1>"]),
        (["x", "--url", "https://h/?token=abc"], ["x", "--url", "<ARGUMENT_2>"]),
        (["x", "--config", '{"token": "abc"}'], ["x", "--config", "<ARGUMENT_2>"]),
        (["sh", "-c", "MY_TOKEN=abc exec y"], ["sh", "-c", "MY_TOKEN=<MY_TOKEN>"]),
    ],
)
def test_a_secret_in_argv_is_taken_out_and_kept_as_a_variable(words, kept):
    found = draft(command=words[0], args=words[1:])

    assert found.command == kept
    assert [each.label for each in found.secrets] == [
        kept[-1 if "<" in kept[-1] else -2].split("<")[1].rstrip(">")
    ]
    assert len(found.to_do) == 1 and "abc" not in found.to_do[0]


def test_words_that_are_none_stay_and_a_server_with_them_is_served():
    words = [
        "uvx",
        "--from",
        f"git+https://h/x@{'0123456789abcdef' * 2}01234567",
        "x",
        "--port",
        "80",
    ]

    found = draft(command=words[0], args=words[1:])

    assert (found.command, found.to_do, found.secrets) == (words, [], [])
    assert found.settings == {"profile": "uvx"}


def test_a_secret_that_stands_in_env_and_argv_is_one():
    found = draft(command="x", args=["--token", "abc"], env={"MY_TOKEN": "abc"})

    assert found.command == ["x", "--token", "<MY_TOKEN>"]
    assert [each.label for each in found.secrets] == ["MY_TOKEN"]


def test_mcp_remote_becomes_what_it_does():
    found = draft(
        command="npx",
        args=[
            "-y",
            "mcp-remote@0.1.29",
            "https://h/mcp",
            "--header",
            "Authorization:${A}",
            "--debug",
        ],
        env={"A": "Bearer abc"},
    )

    (secret,) = found.secrets
    assert (found.url, found.command) == ("https://h/mcp", [])
    assert (secret.label, secret.prefix, secret.value) == ("Authorization", "Bearer ", "abc")
    assert any("--debug" in note for note in found.notes)


@pytest.mark.parametrize(
    "url",
    [
        "https://h/mcp?ghp_1234567890abcdefghij",
        "https://h/mcp?a=b&0123456789abcdef0123456789abcdef",
        "https://h/ghp_1234567890abcdefghij/mcp",
        "https://h/mcp#token=ghp_1234567890abcdefghij",
        "https://ghp_1234567890abcdefghij@h/mcp",
        "https://h/mcp?x=https%3A%2F%2Fu%3Aghp_1234567890abcdefghij%40h",
    ],
)
def test_no_part_of_a_url_carries_a_secret_into_the_configuration(url):
    found = draft(url=url)

    told = json.dumps([found.url, found.to_do, found.notes, found.left_out, found.skipped])
    assert "ghp_" not in told and "0123456789abcdef" not in told


def test_what_mcp_remote_is_given_beside_its_url_is_not_repeated():
    found = draft(command="npx", args=["mcp-remote", "https://h/mcp", "9696", "ghp_1234567890"])

    assert "a further word" in found.notes[-1] and "ghp_" not in "".join(found.notes)


def test_a_variable_of_mcp_remote_that_is_no_value_yet_is_to_be_set():
    args = ["mcp-remote", "https://h/mcp", "--header", "Authorization:${A}"]

    (secret,) = draft(command="npx", args=args, env={"A": "Bearer ${env:B}"}).secrets

    assert (secret.value, secret.hint) == (None, "${A} of the file")


@pytest.mark.parametrize("value", [10**400, float("inf"), [1], {"a": 1}])
def test_a_number_that_nobody_means_is_no_variable(value):
    assert "env.A: allowed is a text" in draft(command="x", env={"A": value}).skipped


def test_user_and_password_of_a_url_become_a_header_and_a_query_loses_its_secret():
    found = draft(url="https://u%40x:p%3A1@h:8443/mcp?a=b&key=abc")

    (secret,) = found.secrets
    assert found.url == "https://h:8443/mcp?a=b"
    assert (secret.prefix, secret.value) == ("Basic ", "dUB4OnA6MQ==")
    assert "key in its URL" in found.to_do[0]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({}, "neither command nor url"),
        ({"command": "x", "url": "https://h"}, "both command and url"),
        ({"url": "ftp://h"}, "http or https"),
        ({"url": "https://h/sse"}, "SSE alone"),
        ({"type": "sse", "url": "https://h/mcp"}, "SSE alone"),
        ({"type": "ws", "url": "wss://h"}, "allowed is stdio or http"),
        ({"type": "stdio", "url": "https://h"}, "it says stdio"),
        ({"type": "builtin", "name": "developer"}, "part of the client itself"),
        ({"url": "${BASE}/mcp"}, "--set BASE=VALUE"),
        ({"url": "https://h/aB1cD2eF3gH4iJ5kL6mN7oP8/mcp"}, "its path is a secret"),
        ({"url": "http://[::1"}, "it is no URL"),
        ({"command": ["x", 1], "args": [None]}, "a list of texts"),
        ({"command": "x", "env": [1]}, "env: allowed is an object"),
        ({"command": "x", "env": {"A": [1]}}, "env.A: allowed is a text"),
        ({"command": "x", "disabled": "yes"}, "disabled: allowed is true or false"),
        ({"command": "x", "includeTools": "all"}, "list of names of tools"),
    ],
)
def test_what_cannot_be_an_entry_is_told(data, told):
    assert told in draft(**data).skipped


@pytest.mark.parametrize(
    ("key", "value", "timeouts"),
    [
        ("timeout", 30, {"call": 30}),
        ("timeout", 30_000, {"call": 30}),
        ("startup_timeout_sec", 2.5, {"start": 2.5}),
        ("startup_timeout_ms", 1500, {"start": 1.5}),
        ("tool_timeout_sec", 90, {"call": 90}),
    ],
)
def test_timeouts_become_ours_in_seconds(key, value, timeouts):
    assert draft(command="x", **{key: value}).settings == {"timeouts": timeouts}


@pytest.mark.parametrize(
    "value", ["30", True, 0, -1, float("inf"), float("nan"), 1e300, 10**400, None]
)
def test_a_timeout_that_is_none_is_left_out_with_a_reason(value):
    found = draft(command="x", timeout=value)

    assert "timeouts" not in found.settings
    assert found.left_out["timeout"]


def test_what_a_command_speaks_of_and_is_not_here_is_told():
    args = ["--directory", "/nonexistent/server", "run", "C:\\data", "/root/x", "https://h/x"]

    notes = draft(command="uv", args=args).notes

    assert [note.split(" ")[0] for note in notes] == [
        "uv",
        "/nonexistent/server",
        "C:\\data",
        "/root/x",
    ]


def test_headers_of_the_transport_are_left_out():
    found = draft(url="https://h/mcp", headers={"Content-Type": "a/b", "Mcp-X": "1", "X-A": "b"})

    assert found.headers == {"X-A": "b"}
    assert {"headers.Content-Type", "headers.Mcp-X"} <= found.left_out.keys()


def test_names_of_tools_are_no_globs_here():
    found = draft(command="x", enabled_tools=["a*", "b"], disabled_tools=["c[1]"])

    assert found.settings["tools"] == {"allow": ["a[*]", "b"], "deny": ["c[[]1]"]}


def test_placeholders_are_put_in_once_and_secrets_never_by_a_default_that_shows():
    inputs = {"p": Input(password=True, default="abc"), "q": Input(default="plain")}
    answers = Answers({"A": "${B}", "B": "x"}, inputs)

    assert answers.resolve("${A}/${env:B}/$BBB").text == "${B}/x/$BBB"
    assert [m.name for m in answers.resolve("$BBB and ${C:-d}").missing] == ["BBB"]
    found = draft(inputs=inputs, command="x", env={"V": "${input:p}", "W": "${input:q}"})
    assert found.env == {"W": "plain"}
    assert [(each.label, each.value) for each in found.secrets] == [("V", "abc")]


def test_a_draft_never_shows_a_secret():
    found = draft(command="x", args=["--token", "abcdef"], env={"PASSWORD": "ghijkl"})

    assert "abcdef" not in repr(found) and "ghijkl" not in repr(found)
    assert {each.value for each in found.secrets} == {"abcdef", "ghijkl"}
