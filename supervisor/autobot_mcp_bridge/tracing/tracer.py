"""Which calls are traced, and what a trace says of them: never what was asked or answered."""

import secrets
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from autobot_mcp_bridge.channels.waiters import WAITING
from autobot_mcp_bridge.config.tracing import TraceExport
from autobot_mcp_bridge.model.versions import SUPPORTED
from autobot_mcp_bridge.policy.audit.asked import Asked, Recorded
from autobot_mcp_bridge.tracing.context import BAGGAGE, PARENT, STATE, Context, context_of
from autobot_mcp_bridge.tracing.exporter import Exporter
from autobot_mcp_bridge.tracing.span import Attributes, CallTrace, new_span

# Characters of any one text: a client chooses names and ids.
LONGEST = 128
VERSION_HEADER, SESSION_HEADER = "MCP-Protocol-Version", "Mcp-Session-Id"
# A trace is taken where the last 8 bytes of its id lie below this share of all (the conventions of
# OpenTelemetry's samplers), so that all who know a trace decide alike.
_ALL = 1 << 64


class Tracer:
    """Implements the `Tracer` of the records.

    Args:
        settings: which calls are traced.
        exporter: takes their spans.
    """

    def __init__(self, settings: TraceExport, exporter: Exporter) -> None:
        self._settings = settings
        self._exporter = exporter
        self._bound = round(settings.ratio * _ALL)

    @property
    def exported(self) -> int:
        return self._exporter.exported

    @property
    def dropped(self) -> Counter[str]:
        return self._exporter.dropped

    def begin(
        self,
        asked: Asked,
        server: Recorded,
        message: Mapping[str, Any],
        headers: Mapping[str, str],
    ) -> CallTrace | None:
        trace = self._begun(asked, server, message, headers)
        # The next request of the connection has the same context.
        WAITING.set(nullcontext if trace is None else trace.starting)
        return trace

    def _begun(
        self,
        asked: Asked,
        server: Recorded,
        message: Mapping[str, Any],
        headers: Mapping[str, str],
    ) -> CallTrace | None:
        if not isinstance(message.get("method"), str):
            return None  # an answer to a server, or no message at all
        around = context_of({name: headers.get(name) for name in (PARENT, STATE, BAGGAGE)})
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        parent = context_of(meta) if isinstance(meta, dict) else None
        link = around if parent is not None and around != parent else None
        parent = parent or around
        trace = parent.trace if parent is not None else _new_trace()
        if not self._samples(parent, trace):
            return None
        if parent is None:
            own = Context(trace, new_span(), sampled=True)
        else:
            own = Context(trace, new_span(), True, parent.state, parent.baggage)
        target = _target(asked, server, message)
        method = _cut(server.redact.name(asked.method))
        name = f"{method} {target}" if target else method
        told = {"mcp.method.name": method, **_attributes(asked, server, message, headers, target)}
        above = parent.span if parent is not None else ""
        return CallTrace(own, above, name, told, self._exporter.put, link)

    def _samples(self, parent: Context | None, trace: str) -> bool:
        if parent is not None and self._settings.follows:
            return parent.sampled
        return int(trace[16:], 16) < self._bound


def _new_trace() -> str:
    return secrets.token_hex(16)


def _cut(text: str) -> str:
    """A client's word, short and fit to be written: lone surrogates cannot be."""
    return text[:LONGEST].encode(errors="replace").decode()


def _target(asked: Asked, server: Recorded, message: Mapping[str, Any]) -> str:
    """The tool or prompt, as the record names it: without what looks like a secret."""
    if asked.tool is not None:
        return _cut(asked.tool)
    params = message.get("params")
    if asked.method != "prompts/get" or not isinstance(params, dict):
        return ""
    name = params.get("name")
    return _cut(server.redact.name(name)) if isinstance(name, str) else ""


def _attributes(
    asked: Asked,
    server: Recorded,
    message: Mapping[str, Any],
    headers: Mapping[str, str],
    target: str,
) -> Attributes:
    told: Attributes = {
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "client.address": _cut(asked.client),
        "mcp_bridge.tenant": server.tenant,
        "mcp_bridge.server": server.server,
        "mcp_bridge.instance": server.instance,
        "mcp_bridge.era": asked.era,
        "mcp_bridge.principal": asked.who.principal,
    }
    if server.project is not None:
        told["mcp_bridge.project"] = server.project
    if asked.who.agent_id is not None:
        told["mcp_bridge.agent.id"] = _cut(asked.who.agent_id)
    if asked.who.agent_type is not None:
        told["mcp_bridge.agent.type"] = _cut(asked.who.agent_type)
    if asked.method == "tools/call":
        told["gen_ai.operation.name"] = "execute_tool"
        if target:
            told["gen_ai.tool.name"] = target
    elif target:
        told["gen_ai.prompt.name"] = target
    if isinstance(identifier := message.get("id"), str | int):
        told["jsonrpc.request.id"] = _cut(server.redact.text(str(identifier), LONGEST))
    if (version := headers.get(VERSION_HEADER)) in SUPPORTED and version is not None:
        told["mcp.protocol.version"] = version
    if SESSION_HEADER in headers:
        told["mcp.session.id"] = asked.session  # a name of it: the id itself is as good as a key
    return told
