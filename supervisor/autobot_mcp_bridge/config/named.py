"""The names of the servers in the files: without the model, whose import takes half a second."""

from autobot_mcp_bridge.config.merge import merge
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.sources import read_sources
from autobot_mcp_bridge.model.names import DEFAULT_TENANT, ServerId


def named(places: Places) -> list[str]:
    """The instance name of each server that has one, sorted; wrong entries are left out."""
    found = set()
    for document in read_sources(places).documents.values():
        if not isinstance(document, dict) or not isinstance(document.get("servers"), list):
            continue
        defaults = document.get("defaults")
        for raw in document["servers"]:
            if not isinstance(raw, dict):
                continue
            entry = merge(defaults if isinstance(defaults, dict) else {}, raw)
            try:
                name, tenant = entry.get("name", ""), entry.get("tenant", DEFAULT_TENANT)
                found.add(ServerId(tenant, entry.get("project"), name).instance)
            except (TypeError, ValueError):
                continue
    return sorted(found)
