"""One tool's inputSchema, ready to check arguments; the only module that knows jsonschema-rs.

A check holds the event loop, so it is bounded beforehand (`weigh`) and patterns are matched in
linear time where they can be. The library is imported for the first schema.
"""

import hashlib
from collections import OrderedDict
from itertools import islice
from typing import Any

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.policy.schema.weigh import SchemaError, Weight

MAX_SCHEMA = 256 << 10  # bytes of one schema
MAX_PATTERN = 2048  # bytes of one pattern
# Bytes that one pattern's machine may take: those of 64 patterns are made in some 10 ms.
MACHINE = 256 << 10
# Steps back of one match with lookaround; beyond it counts as no match.
STEPS_BACK = 1000
# A check is at most so many steps of 0.03 us or so; a text tried with a pattern is one step for 256
# characters, with lookaround 100 for each (measured).
BUDGET = 1_000_000
LINEAR_TEXT, LOOKAROUND_TEXT = 1 / 256, 100
# Names of arguments that an error tells, and how much of each.
MOST_NAMES, LONGEST_NAME = 8, 64
# Compiled schemas that are kept, by their digest: as many as 50 servers of 20 tools have.
MOST_KEPT = 1000


class Schema:
    """Checks arguments against one schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        """Raises SchemaError."""
        try:
            import jsonschema_rs
        except ImportError:
            text = "jsonschema-rs is not installed here; install the extra `policy`"
            raise SchemaError(text) from None
        self._weight = Weight(schema)
        linear = jsonschema_rs.RegexOptions(size_limit=MACHINE, dfa_size_limit=MACHINE)
        around = jsonschema_rs.FancyRegexOptions(
            backtrack_limit=STEPS_BACK, size_limit=MACHINE, dfa_size_limit=MACHINE
        )
        self._text_cost = LINEAR_TEXT
        try:
            self._validator = self._made(schema, linear)
        except SchemaError:
            if not self._weight.patterns:
                raise
            self._text_cost = LOOKAROUND_TEXT
            self._validator = self._made(schema, around)

    @staticmethod
    def _made(schema: dict[str, Any], patterns: Any) -> Any:
        import jsonschema_rs

        try:
            return jsonschema_rs.validator_for(
                schema, offline=True, validate_formats=False, pattern_options=patterns
            )
        except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
            raise SchemaError("it is no JSON Schema that can be used") from None

    def check(self, arguments: dict[str, Any]) -> None:
        """See whether they fit.

        Raises:
            CallError: they do not, or to find out would take too long.
        """
        values, depth, characters = _measured(arguments)
        checks, patterns = self._weight.at(depth)
        if values * checks + characters * patterns * self._text_cost > BUDGET:
            text = "to check these arguments against the tool's inputSchema would take too long"
            raise CallError(Cause.SCHEMA_UNUSABLE, text)
        try:
            fits = self._validator.is_valid(arguments)
        except (ValueError, TypeError, UnicodeEncodeError):  # a number of 20 digits
            raise CallError(Cause.SCHEMA_MISMATCH, "arguments that cannot be checked") from None
        if not fits:
            names = ", ".join(self._names(arguments)) or "the arguments"
            text = f"the arguments do not fit the tool's inputSchema: {names}"
            raise CallError(Cause.SCHEMA_MISMATCH, text)

    def _names(self, arguments: dict[str, Any]) -> list[str]:
        """Which arguments are wrong or missing, never their values."""
        found: dict[str, None] = {}
        for error in islice(self._validator.iter_errors(arguments), MOST_NAMES * 4):
            name = error.instance_path[0] if error.instance_path else None
            if name is None:
                name = getattr(error.kind, "property", None)
            if isinstance(name, str):
                found[name.strip('"')[:LONGEST_NAME]] = None
        return list(found)[:MOST_NAMES]


_kept: OrderedDict[bytes, Schema | SchemaError] = OrderedDict()


class Anything(Schema):
    """Of a tool without a schema, which takes any arguments."""

    def __init__(self) -> None: ...

    def check(self, arguments: dict[str, Any]) -> None: ...


def schema_of(descriptor: dict[str, Any]) -> Schema:
    """A tool's schema, made once for all servers that give the same.

    Raises:
        SchemaError: it cannot be used.
    """
    raw = descriptor.get("inputSchema")
    if raw is None or raw is True or raw == {}:
        return Anything()
    try:
        text = jsonrpc.dumps(raw)
    except ValueError:
        raise SchemaError("it cannot be written") from None
    digest = hashlib.sha256(text).digest()
    if digest in _kept:
        _kept.move_to_end(digest)
    else:
        _kept[digest] = _compile(raw, len(text))
        if len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    found = _kept[digest]
    if isinstance(found, SchemaError):
        raise found
    return found


def _compile(raw: Any, size: int) -> Schema | SchemaError:
    if size > MAX_SCHEMA:
        return SchemaError(f"it has more than {MAX_SCHEMA >> 10} KiB")
    if not isinstance(raw, dict):
        return SchemaError("it is no object")
    try:
        return Schema(raw)
    except SchemaError as error:
        return error


def _measured(arguments: dict[str, Any]) -> tuple[int, int, int]:
    """As `measure`, at once for the few plain values that most calls have."""
    characters = 0
    for name, value in arguments.items():
        if isinstance(value, str):
            characters += len(value)
        elif isinstance(value, dict | list):
            return measure(arguments)
        characters += len(name)
    return len(arguments) + 1, 1, characters


def measure(value: Any) -> tuple[int, int, int]:
    """How many values there are, how deep they lie, and how many characters of text they have."""
    values = depth = characters = 0
    level = [value]
    while level:
        values += len(level)
        below: list[Any] = []
        for one in level:
            if isinstance(one, str):
                characters += len(one)
            elif isinstance(one, dict):
                characters += sum(map(len, one))
                below += one.values()
            elif isinstance(one, list):
                below += one
        if below:
            depth += 1
        level = below
    return values, depth, characters
