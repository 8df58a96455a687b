"""A tool as its server describes it, and what of that the chain works with; made once a list."""

from typing import Any

from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.policy.schema.validate import Schema, schema_of
from autobot_mcp_bridge.policy.schema.weigh import SchemaError


class Descriptor:
    """One tool of one server.

    Attributes:
        read_only: what it says of itself; a tool that does not say so writes (25 schema,
            ToolAnnotations).
    """

    __slots__ = ("_raw", "_schema", "read_only")

    def __init__(self, raw: dict[str, Any]) -> None:
        self._raw = raw
        self._schema: Schema | SchemaError | None = None
        self.read_only = is_read_only(raw)

    def check(self, arguments: dict[str, Any]) -> None:
        """See whether arguments fit the inputSchema; a tool without one takes any (SM-49).

        Raises:
            CallError: they do not, or that cannot be found out.
        """
        if self._schema is None:
            try:
                self._schema = schema_of(self._raw)
            except SchemaError as error:
                self._schema = error
        if isinstance(self._schema, SchemaError):
            text = f"the tool's inputSchema cannot be used: {self._schema}"
            raise CallError(Cause.SCHEMA_UNUSABLE, text)
        self._schema.check(arguments)


def is_read_only(raw: dict[str, Any]) -> bool:
    annotations = raw.get("annotations")
    return isinstance(annotations, dict) and annotations.get("readOnlyHint") is True
