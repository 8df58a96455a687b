"""Keys that the model knows and nothing honours yet: refused, never ignored.

Whoever builds one of them removes its line here.
"""

from collections.abc import Iterator

from autobot_mcp_bridge.config.problem import Loc
from autobot_mcp_bridge.model.server import ServerSpec

# Key: the only value that is accepted today.
UNBUILT: dict[str, object] = {
    "credentials": {},
    "groups": (),
    "headers": {},
    "max_exposure": None,
    "run_as": None,
    "sessions": "shared",
    "url": None,
    "warm_pool": 0,
}


def mark(key: str) -> str:
    """What the documentation adds to the description of the key; empty for one that is built."""
    if key not in UNBUILT:
        return ""
    return f" (only {UNBUILT[key]}: not built yet)" if UNBUILT[key] else " (not built yet)"


def unbuilt(spec: ServerSpec) -> Iterator[tuple[Loc, object, str]]:
    """Each key of the server that asks for something not built: place, value, clause."""
    for key, accepted in UNBUILT.items():
        value = getattr(spec, key)
        if value != accepted:
            only = f"; allowed is {accepted!r}" if key == "sessions" else "; leave it out"
            yield (key,), value, f"not built yet{only}"
