"""The JSON Schema of servers.json, for editors, generated from the model."""

import copy
from typing import Any

from autobot_mcp_bridge.config.load import NO_DEFAULT, VERSION
from autobot_mcp_bridge.config.unbuilt import OF_UNITS, UNBUILT, mark
from autobot_mcp_bridge.model.server import ServerSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def servers_schema() -> dict[str, Any]:
    """The schema of servers.json and of each file in servers.d."""
    server = ServerSpec.model_json_schema()
    shared = server.pop("$defs")
    _without_titles(server)
    for record in shared.values():
        _without_titles(record)
    for key in (*UNBUILT, *OF_UNITS):
        server["properties"][key]["description"] += mark(key)
    defaults = copy.deepcopy(server)
    del defaults["required"]
    for key in NO_DEFAULT:
        del defaults["properties"][key]
    return {
        "$schema": DIALECT,
        "title": "The servers of autobot-mcp-bridge",
        "type": "object",
        "properties": {
            "$schema": {"type": "string", "description": "for editors"},
            "version": {"const": VERSION, "description": "of this form"},
            "defaults": {
                "$ref": "#/$defs/Defaults",
                "description": "merged below each server of the file, tables key by key",
            },
            "servers": {"type": "array", "items": {"$ref": "#/$defs/Server"}},
        },
        "required": ["version"],
        "additionalProperties": False,
        "$defs": {**shared, "Defaults": defaults, "Server": server},
    }


def _without_titles(record: dict[str, Any]) -> None:
    """Remove pydantic's titles, which repeat the keys."""
    record.pop("title", None)
    for value in record["properties"].values():
        value.pop("title", None)
