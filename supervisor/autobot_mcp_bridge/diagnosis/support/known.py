"""The secrets of this host, so that they can be looked for in all that a bundle holds."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.diagnosis.secret_values import content, decrypted, forms
from autobot_mcp_bridge.diagnosis.support.scrub import HARMLESS, passwords_in, secrets_in

CREDENTIALS = Path("/etc/credstore")
# systemd-creds(1) runs for each encrypted one; of more than so many the patterns must do.
MOST_CREDENTIALS = 200


def known_secrets(places: Places) -> list[str]:
    """Every value that must not leave the host, as far as this user can read it. Blocks."""
    return [
        *dict.fromkeys(
            forms((*_configured(places), *_installers(places), *_stored(places), *_tokens(places)))
        )
    ]


def _configured(places: Places) -> Iterator[str]:
    """What stands in the configuration, and in the files of root's that it names."""
    files = (places.servers_json, places.accepted, *sorted(places.servers_d.glob("*.json")))
    named: set[str] = set()
    for path in files:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue  # not there, or left out of the bundle
        yield from secrets_in(document)
        named |= {*files_in(document)}
    for name in sorted(named)[:MOST_CREDENTIALS]:
        yield content(Path(name))


def _installers(places: Places) -> Iterator[str]:
    """What installs of packages are handed: proxies and registries, perhaps with a password."""
    for line in content(places.config_dir / "environment").splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith("#") and not HARMLESS.fullmatch(name):
            yield value.strip("\"'")
            yield from passwords_in(value)


def files_in(value: Any, key: str = "") -> Iterator[str]:
    """The file of each entry of `credentials` that names one."""
    match value:
        case dict() if key == "credentials":
            for entry in value.values():
                if isinstance(entry, dict) and isinstance(file := entry.get("file"), str):
                    yield file
        case dict():
            for name, each in value.items():
                yield from files_in(each, name)
        case list():
            for each in value:
                yield from files_in(each, key)


def _stored(places: Places) -> Iterator[str]:
    yield from map(content, _files(CREDENTIALS))
    yield from map(decrypted, _files(places.encrypted_credentials))


def _tokens(places: Places) -> Iterator[str]:
    for path in _files(places.headers_d):
        yield content(path).rpartition(" ")[2]


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_file())[:MOST_CREDENTIALS]
    except OSError:
        return []
