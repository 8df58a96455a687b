"""The token of a server as a header line in a file, for `curl -H @FILE` and `mcp-bridge call`.

A token in an argv is in every user's `ps`; in a file of mode 0600 it is not.
"""

from pathlib import Path

from autobot_mcp_bridge.config.errors import DataError, DeniedError
from autobot_mcp_bridge.config.files import private_directory, remove_file, replace_file
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.names import ServerId

NAME = "authorization"
SCHEME = "bearer"


def header_file(places: Places, server: ServerId) -> Path:
    return places.headers_d / server.instance


def write_header(places: Places, server: ServerId, token: str) -> Path:
    """Store the token as the server's header file; the file."""
    private_directory(places.headers_d)
    path = header_file(places, server)
    replace_file(path, f"Authorization: Bearer {token}\n".encode(), mode=0o600)
    return path


def remove_header(places: Places, server: ServerId) -> bool:
    if not places.headers_d.is_dir():
        return False
    return remove_file(header_file(places, server))


def read_token(path: Path) -> str:
    """The token in a header file, or in a file that holds nothing else.

    Raises:
        FileNotFoundError: there is no such file.
        DeniedError: this user may not read it.
        DataError: it holds no token.
    """
    try:
        text = path.read_text(encoding="ascii").strip()
    except PermissionError as error:
        raise DeniedError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: allowed is a token, or a header line with one") from error
    name, colon, value = text.partition(":")
    if colon and name.strip().lower() == NAME:
        scheme, _, text = value.strip().partition(" ")
        text = text.strip() if scheme.lower() == SCHEME else ""
    if not text or any(character.isspace() for character in text):
        raise DataError(f"{path}: allowed is a token, or a header line with one")
    return text
