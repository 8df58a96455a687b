"""How a client reaches a server: by which URL, and whose client it is."""

import contextlib
import os
import pwd
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from autobot_mcp_bridge.cli import control
from autobot_mcp_bridge.cli.common import known_server, running_endpoint
from autobot_mcp_bridge.config.errors import DeniedError, MissingError
from autobot_mcp_bridge.config.load import load
from autobot_mcp_bridge.config.places import Places, default_places
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.names import ServerId


def refuse_unknown(places: Places, server: ServerId) -> None:
    """Refuse a server that is not there; a host's own ones are root's to look at."""
    try:
        known_server(places, server)
    except MissingError as error:
        if os.geteuid() == 0 or not default_places(uid=0).config_dir.is_dir():
            raise
        text = f"{error}; of this host's own ones, use sudo, or say their proxy's --url"
        raise MissingError(text) from error


def url_of(server: ServerId, places: Places, given: str | None) -> str:
    """The endpoint, as the client is to reach it.

    Args:
        server: which one.
        places: where the proxy is asked, and host.toml lies.
        given: what a person says, the proxy's or the endpoint's own URL; None: this host's proxy.

    Raises:
        UsageError: what was given is no such URL.
    """
    if given:
        return _given(given).removesuffix(server.path) + server.path
    from autobot_mcp_bridge.proxy.server import connectable

    host = load(places).host
    base = host.http.public_url or _running(places)
    if base is None:
        scheme = "https" if host.tls.certificate else "http"
        base = f"{scheme}://{_bracketed(host.listen.address)}:{host.listen.port}"
    return connectable(base).rstrip("/") + server.path


def _given(text: str) -> str:
    try:
        parts = urlsplit(text)
        whole = parts.scheme in {"http", "https"} and parts.hostname and not parts.query
        secret = parts.username or parts.password
    except ValueError:  # brackets around what is no address
        whole, secret = None, None
    if secret:
        raise UsageError("--url: no name or password may stand in it")
    if not whole:
        raise UsageError("--url: allowed is http://HOST or https://HOST, with a port or a path")
    return text.rstrip("/")


def _running(places: Places) -> str | None:
    """Where the proxy says that it listens: in the foreground by a file, as a unit when asked."""
    found = running_endpoint(places)
    if found is None:
        with contextlib.suppress(DeniedError):
            found = control.status(places)
    url = (found or {}).get("url")
    return url if isinstance(url, str) and url.startswith("http") else None


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def user() -> tuple[Path, Mapping[str, str]]:
    """Home and variables of who is to be connected: of who typed sudo, which keeps no variables."""
    uid = os.environ.get("SUDO_UID", "")
    if os.geteuid() == 0 and uid.isascii() and uid.isdigit() and int(uid):
        try:
            return Path(pwd.getpwuid(int(uid)).pw_dir), {}
        except KeyError as error:
            raise UsageError(f"SUDO_UID: {uid} is no user here; allowed is --file") from error
    return Path.home(), os.environ
