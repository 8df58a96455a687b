"""What `mcp-bridge secret list` shows; no value is known here."""

from collections.abc import Sequence

from autobot_mcp_bridge.cli.common import note, print_json, print_table
from autobot_mcp_bridge.cli.shown import show_seconds
from autobot_mcp_bridge.units.secrets import Secret


def show(found: Sequence[Secret], *, as_json: bool) -> None:
    """A table with what is wrong below it, or all of it for programs."""
    if as_json:
        print_json({"secrets": [_as_data(secret) for secret in found]})
        return
    rows = [
        (
            secret.name,
            secret.kind,
            show_seconds(secret.age),
            ", ".join(map(str, secret.uses)) or "-",
        )
        for secret in found
    ]
    print_table(("NAME", "KIND", "AGE", "SERVERS"), rows)
    for secret in found:
        if secret.trouble:
            note(f"{secret.name}: {secret.trouble}")


def _as_data(secret: Secret) -> dict[str, object]:
    return {
        "name": secret.name,
        "kind": secret.kind,
        "age": None if secret.age is None else round(secret.age),
        "trouble": secret.trouble,
        "servers": [
            {"server": use.instance, "variable": use.variable, "as": use.credential.form}
            for use in secret.uses
        ],
    }
