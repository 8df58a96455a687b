"""Scopes of access tokens (RFC 6749 section 3.3), with places for a server's names."""

from autobot_mcp_bridge.model.names import ServerId

PLACES = ("{tenant}", "{project}", "{name}")


def fill(scopes: tuple[str, ...], server: ServerId) -> tuple[str, ...]:
    """The scopes for one server; `-` stands for no project, which no project is called."""
    names = (server.tenant, server.project or "-", server.name)
    return tuple(_replaced(scope, names) for scope in scopes)


def is_template(scope: str) -> bool:
    """Tell whether its braces are all places that can be filled."""
    rest = _replaced(scope, ("", "", ""))
    return "{" not in rest and "}" not in rest


def _replaced(scope: str, names: tuple[str, str, str]) -> str:
    for place, name in zip(PLACES, names, strict=True):
        scope = scope.replace(place, name)
    return scope
