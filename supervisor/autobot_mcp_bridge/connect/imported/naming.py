"""Names that clients give, as names that are allowed here."""

import hashlib
import re
from collections.abc import Callable, Collection

from autobot_mcp_bridge.model.names import DEFAULT_TENANT, UNIT_SUFFIXES, ServerId, is_part

_LONGEST = 32  # characters of a part (model/names.py)
_DIGEST = 8  # hexadecimal digits that tell two apart which would else be cut to one
_OTHER = re.compile(r"[^a-z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def server_name(name: str, taken: Collection[str]) -> str:
    """The client's name if it is allowed, else one that is near it, and none of `taken`."""
    base = name if is_part(name) else _slug(name) or f"server-{_digest(name)}"
    if base in UNIT_SUFFIXES:
        base = f"{base}-server"  # systemctl would take it for a unit's type
    base = _cut(base, name)
    found, number = base, 1
    while found in taken:
        number += 1
        found = _cut(f"{base[: _LONGEST - 4].rstrip('-')}-{number}", f"{name} {number}")
    return found


def secret_name(server: ServerId, label: str, is_anothers: Callable[[str], bool]) -> str:
    """The name of a server's secret: always the same for the same server and label.

    Args:
        server: whose it is.
        label: its variable or header.
        is_anothers: whether a name is that of another server's secret, or of another label's.
    """
    words = _slug(label)
    own = server.name
    plain = words if f"{words}-".startswith(f"{own}-") else f"{own}-{words}"
    whole = f"{server.instance}\0{label}"
    short = server.tenant == DEFAULT_TENANT and server.project is None and len(plain) <= _LONGEST
    if short and is_part(plain) and not is_anothers(plain):
        return plain
    return f"{plain[: _LONGEST - 1 - _DIGEST].strip('-')}-{_digest(whole)}"


def _slug(text: str) -> str:
    return _OTHER.sub("-", _CAMEL.sub("-", text).lower()).strip("-")


def _cut(text: str, whole: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - 1 - _DIGEST].rstrip('-')}-{_digest(whole)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
