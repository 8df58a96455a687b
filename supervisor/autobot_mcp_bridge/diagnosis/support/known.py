"""The secrets of this host, so that they can be looked for in all that a bundle holds."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.diagnosis.support.scrub import secrets_in

CREDENTIALS = Path("/etc/credstore")
DECRYPT_WITHIN = 5.0
MOST_BYTES = 1 << 16
# systemd-creds(1) runs for each encrypted one; of more than so many the patterns must do.
MOST_CREDENTIALS = 200


def known_secrets(places: Places) -> list[str]:
    """Every value that must not leave the host, as far as this user can read it. Blocks."""
    found = [*_configured(places), *_stored(places), *_tokens(places)]
    # A file of several lines may be shown line by line.
    return [line.strip() for text in found for line in (text, *text.splitlines()) if line.strip()]


def _configured(places: Places) -> Iterator[str]:
    files = (places.servers_json, places.accepted, *sorted(places.servers_d.glob("*.json")))
    for path in files:
        try:
            yield from secrets_in(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue  # not there, or left out of the bundle


def _stored(places: Places) -> Iterator[str]:
    for path in _files(CREDENTIALS):
        yield _content(path)
    for path in _files(places.encrypted_credentials):
        yield from _decrypted(path)


def _tokens(places: Places) -> Iterator[str]:
    for path in _files(places.headers_d):
        yield _content(path).rpartition(" ")[2]


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_file())[:MOST_CREDENTIALS]
    except OSError:
        return []


def _content(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(MOST_BYTES)
    except OSError:
        return ""


def _decrypted(path: Path) -> Iterator[str]:
    """By the name of its file, or by none, whichever it was encrypted with."""
    for name in (path.name, ""):
        words = ["systemd-creds", "decrypt", f"--name={name}", str(path), "-"]
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=DECRYPT_WITHIN,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            continue
        yield done.stdout.decode("utf-8", "replace")
        return
