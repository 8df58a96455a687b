"""The filters of a drop-in's template, for Ansible's own Jinja2."""

from autobot_mcp_bridge.units import escape


class FilterModule:
    def filters(self):
        return {name: getattr(escape, name) for name in ("path", "bound", "value", "assignment")}
