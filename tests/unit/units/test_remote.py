"""What a server by url executes, and what its unit loads for it."""

import json

import pytest

from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.credentials import missing
from autobot_mcp_bridge.units.packages import remote
from autobot_mcp_bridge.units.render import drop_in
from autobot_mcp_bridge.units.sandbox.confinement import Facts

PYTHON = "/usr/lib/mcp-bridge/venv/bin/python"
SECRET = {"Authorization": {"credential": "far-key", "prefix": "Bearer "}, "X-Team": "web 100%"}


def spec(**keys):
    return ServerSpec.model_validate({"name": "far", "url": "https://a.example/mcp?a=%20b", **keys})


def text_of(definition, facts=None):
    command = remote.command(definition, PYTHON, units=True)
    return drop_in(definition, command, facts or Facts())


def test_the_command_is_the_products_own_python_with_the_url():
    found = remote.command(spec(), PYTHON, units=True)

    assert found.argv[:5] == [PYTHON, "-I", "-m", remote.MODULE, "https://a.example/mcp?a=%20b"]
    assert found.env == {}


def test_a_list_is_told_by_allow_and_names_by_the_egress_proxy():
    listed = spec(network={"mode": "list", "allow": ["10.0.0.0/8", "fd00::7"]})
    named = spec(network={"mode": "names", "allow": ["a.example.com"]})

    words = remote.command(listed, PYTHON, units=False).argv
    assert [words[at + 1] for at, word in enumerate(words) if word == "--allow"] == [
        "10.0.0.0/8",
        "fd00::7",
    ]
    assert "http://127.0.0.1:3128" in remote.command(named, PYTHON, units=True).argv
    assert "--proxy" not in remote.command(named, PYTHON, units=False).argv


def test_a_secret_is_loaded_as_a_file_whose_path_alone_is_told():
    text = text_of(spec(headers=SECRET))

    assert "LoadCredential=MCP_HEADER_AUTHORIZATION.file:/etc/credstore/far-key\n" in text
    (line,) = [each for each in text.splitlines() if "MCP_BRIDGE_HEADERS" in each]
    assert "far-key" not in line
    told = remote.command(spec(headers=SECRET), PYTHON, units=True).env["MCP_BRIDGE_HEADERS"]
    assert json.loads(told) == {
        "Authorization": {"variable": "MCP_HEADER_AUTHORIZATION", "prefix": "Bearer "},
        "X-Team": "web 100%",
    }


def test_a_secret_that_is_not_there_is_told_as_every_servers(tmp_path):
    facts = Facts(credentials=str(tmp_path / "a"), encrypted=str(tmp_path / "b"))
    (told,) = missing(spec(headers=SECRET), facts)

    assert "far-key" in told
    assert "mcp-bridge secret set far-key" in told


@pytest.mark.parametrize(
    ("network", "private", "allowed"),
    [
        ({}, "no", "8.0.0.0/7"),
        ({"mode": "list", "allow": ["10.1.2.3"]}, "no", "10.1.2.3"),
        ({"mode": "names", "allow": ["a.example.com"]}, "yes", "localhost"),
    ],
)
def test_the_kernel_lets_through_what_the_mode_says_and_the_internet_by_default(
    network, private, allowed
):
    text = text_of(spec(network=network) if network else spec())

    assert f"PrivateNetwork={private}\n" in text
    assert allowed in text


def test_what_its_program_is_told_is_part_of_what_needs_a_new_process():
    plain = spec().process_view(units=True)

    for keys in (
        {"headers": {"X": "y"}},
        {"url": "https://b.example/"},
        {"caps": {"line": "32M"}},
        {"network": {"mode": "list", "allow": ["10.0.0.0/8"]}},
    ):
        assert spec(**keys).process_view(units=True) != plain
