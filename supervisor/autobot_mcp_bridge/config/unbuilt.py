"""Keys that the model knows and nothing honours yet, or only units do: refused, never ignored.

Whoever builds one of them removes its line here.
"""

from collections.abc import Iterator

from autobot_mcp_bridge.config.problem import Loc
from autobot_mcp_bridge.model.server import ServerSpec

# Key: the only value that is accepted today.
UNBUILT: dict[str, object] = {
    "warm_pool": 0,
}
# Key: the only value that servers without units can have.
OF_UNITS: dict[str, object] = {"credentials": {}, "groups": (), "root": None, "run_as": None}
# Key: the only value that units can have as yet.
NOT_OF_UNITS: dict[str, object] = {"sessions": "shared"}


def mark(key: str) -> str:
    """What the documentation adds to the description of the key; empty for one that is built."""
    if key.partition(".")[0] in OF_UNITS:
        return " (with systemd only)"
    if key in NOT_OF_UNITS:
        return f" (only {NOT_OF_UNITS[key]} with systemd: not built yet)"
    if key not in UNBUILT:
        return ""
    return f" (only {UNBUILT[key]}: not built yet)" if UNBUILT[key] else " (not built yet)"


def unbuilt(spec: ServerSpec, *, units: bool) -> Iterator[tuple[Loc, object, str]]:
    """Each key of the server that asks for something that cannot be had: place, value, clause.

    Args:
        spec: the server.
        units: whether it becomes a unit of systemd.
    """
    for key, accepted in UNBUILT.items():
        value = getattr(spec, key)
        if value != accepted:
            yield (key,), value, "not built yet; leave it out"
    for key, accepted in NOT_OF_UNITS.items():
        value = getattr(spec, key)
        if value != accepted and units:
            yield (key,), value, f"not built yet for units of systemd; allowed is {accepted!r}"
    for name, header in spec.headers.items():
        if header.credential is not None and not units:
            clause = "only a unit of systemd is given a secret (mcp-bridge apply)"
            yield ("headers", name), None, clause
    for key, accepted in OF_UNITS.items():
        value = getattr(spec, key)
        if value != accepted and not units:
            yield (key,), value, "only a unit of systemd keeps it (mcp-bridge apply); leave it out"
