import pwd
from pathlib import Path

import pytest

from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.config.headers import header_file, read_token, remove_header, write_header
from autobot_mcp_bridge.config.places import Places, resolve_places
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.names import parse_instance


def test_root_has_the_places_of_the_system():
    assert resolve_places(environ={}, uid=0) == Places(
        Path("/etc/mcp-bridge"), Path("/var/lib/mcp-bridge"), Path("/run/mcp-bridge")
    )


def test_an_ordinary_user_has_those_of_xdg():
    environ = {
        "HOME": "/h",
        "XDG_STATE_HOME": "/s",
        "XDG_RUNTIME_DIR": "/r",
        "XDG_CONFIG_HOME": "x",
    }

    assert resolve_places(environ=environ, uid=1000) == Places(
        Path("/h/.config/mcp-bridge"), Path("/s/mcp-bridge"), Path("/r/mcp-bridge")
    )


def test_without_a_runtime_directory_the_state_directory_has_one():
    places = resolve_places(environ={"HOME": "/h"}, uid=1000)

    assert places.runtime_dir == Path("/h/.local/state/mcp-bridge/run")


def test_without_home_the_users_own_entry_counts():
    home = pwd.getpwuid(65534).pw_dir

    assert resolve_places(environ={}, uid=65534).config_dir == Path(home, ".config/mcp-bridge")


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "relative"}])
def test_without_any_home_it_says_what_to_give(environ):
    with pytest.raises(UsageError, match="--config-dir"):
        resolve_places(environ=environ, uid=4_242_424)


def test_an_argument_wins_over_the_environment_and_the_environment_over_the_default():
    environ = {"MCP_BRIDGE_CONFIG_DIR": "/env", "MCP_BRIDGE_STATE_DIR": "/state"}

    places = resolve_places(config_dir="/arg", environ=environ, uid=0)

    assert places == Places(Path("/arg"), Path("/state"), Path("/run/mcp-bridge"))


def test_a_relative_place_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert resolve_places(config_dir="c", environ={}, uid=0).config_dir == tmp_path / "c"


def test_a_header_file_holds_the_line_for_curl_and_only_its_owner_reads_it(tmp_path):
    places = resolve_places(state_dir=tmp_path, environ={}, uid=0)
    server = parse_instance("acme.files")

    path = write_header(places, server, "mcpb_x")

    assert path == header_file(places, server) == tmp_path / "headers.d" / "acme.files"
    assert path.read_text(encoding="ascii") == "Authorization: Bearer mcpb_x\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert read_token(path) == "mcpb_x"
    assert remove_header(places, server)
    assert not path.exists()


@pytest.mark.parametrize("text", ["mcpb_x", " mcpb_x \n", "authorization:bearer  mcpb_x"])
def test_a_token_is_read_from_a_header_line_or_alone(tmp_path, text):
    (tmp_path / "token").write_text(text, encoding="ascii")

    assert read_token(tmp_path / "token") == "mcpb_x"


@pytest.mark.parametrize("text", ["", "Authorization: Basic x", "two words", "a\nb", "Cookie: x"])
def test_a_file_without_a_token_is_refused(tmp_path, text):
    (tmp_path / "token").write_text(text, encoding="ascii")

    with pytest.raises(DataError):
        read_token(tmp_path / "token")
