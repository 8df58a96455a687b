"""The lines that a newcomer pastes."""

import json
import shlex
from itertools import pairwise

import pytest

from autobot_mcp_bridge.cli.hints import Example, Hints, call_line, curl_line, read_examples
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.names import parse_instance

URL = "http://127.0.0.1:8765"
SERVER = parse_instance("acme.web.files")


@pytest.fixture
def places(tmp_path):
    return Places(tmp_path / "config", tmp_path / "it's state", tmp_path / "run")


def pairs(words, flag):
    return [after for word, after in pairwise(words) if word == flag]


def test_the_curl_line_is_one_request_of_the_modern_era(places):
    example = Example("get-sum", {"a": 1, "text": "it's"})
    words = shlex.split(curl_line(SERVER, URL, places, example))

    headers = pairs(words, "-H")
    assert words[0] == "curl"
    assert URL + SERVER.path in words
    assert headers[0] == f"@{places.headers_d}/acme.web.files"
    assert {
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        "Mcp-Name: get-sum",
    } <= set(headers)
    (body,) = pairs(words, "-d")
    params = json.loads(body)["params"]
    assert params["arguments"] == example.arguments
    assert params["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert params["_meta"]["io.modelcontextprotocol/clientCapabilities"] == {}


def test_without_an_example_the_line_lists_the_tools(places):
    words = shlex.split(curl_line(SERVER, URL, places, None))

    assert json.loads(pairs(words, "-d")[0])["method"] == "tools/list"
    assert [h for h in pairs(words, "-H") if h.startswith("Mcp-Name")] == []


def test_the_call_line_finds_a_proxy_whose_files_lie_elsewhere(places):
    words = shlex.split(call_line(SERVER, places, Example("t", {"x": "a b"})))

    assert words[1:4] == ["call", "--runtime-dir", str(places.runtime_dir)]
    assert words[4:] == ["acme.web.files", "t", '{"x": "a b"}']


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', '{"a": {"tool": "x"}}'])
def test_a_file_of_examples_that_is_none_is_refused_with_what_is_allowed(places, tmp_path, text):
    file = tmp_path / "calls.json"
    file.write_text(text)

    with pytest.raises(UsageError, match="allowed is"):
        Hints(places, file)


def test_a_missing_file_of_examples_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"calls\.json"):
        read_examples(tmp_path / "calls.json")
