"""A server with `url` as a command: the program that speaks to the remote one, and what it is told."""

import json

from autobot_mcp_bridge.model import header
from autobot_mcp_bridge.model.command import HEADERS, Command
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.sandbox import names

MODULE = "autobot_mcp_bridge.upstream"


def command(spec: ServerSpec, python: str, *, units: bool) -> Command:
    """What to execute for it; no secret is in it.

    Args:
        spec: a server with url.
        python: that has this package.
        units: whether it becomes a unit, whose own loopback leads to the egress proxy.
    """
    words = [python, "-I", "-m", MODULE, str(spec.url)]
    if spec.network.mode == "list":
        words += [word for text in spec.network.allow for word in ("--allow", text)]
    if units and names.has_names(spec):
        words += ["--proxy", names.PROXY]
    # An answer has the bound of a line, and no client's message is above that of a body.
    words += ["--most", str(max(spec.caps.line, spec.caps.body))]
    headers = {
        name: each.text
        if each.text is not None
        else {"variable": header.variable(name), "prefix": each.prefix}
        for name, each in spec.headers.items()
    }
    return Command(words, {HEADERS: json.dumps(headers)} if headers else {})
