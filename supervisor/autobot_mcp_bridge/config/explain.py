"""What pydantic says, in this project's words; the one place that knows pydantic's error types."""

import difflib
import re
from collections.abc import Callable
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from autobot_mcp_bridge.config.problem import Loc, Problem, json_path, show_value
from autobot_mcp_bridge.model.server import PATTERNS

_PHRASES = {
    "string_type": "allowed is text",
    "int_type": "allowed is a whole number",
    "float_type": "allowed is a number",
    "bool_type": "allowed is true or false",
    "tuple_type": "allowed is a list",
    "dict_type": "allowed is an object",
    "model_type": "allowed is an object",
    "missing": "missing; it must be given",
}
# A record's own check names its key first, as in `name 'socket': …` and `command: …`.
_OWN_CHECK = re.compile(r"(?P<key>[a-z_]+)(?: (?P<value>'.*'))?: (?P<text>.*)", re.DOTALL)


def problems_of(
    error: ValidationError, model: type[BaseModel], place: Callable[[Loc], Loc], file: str
) -> list[Problem]:
    """One problem for each of pydantic's errors.

    Args:
        error: what validating the model raised.
        model: the record that was validated.
        place: from a place in the record to the place in the file.
        file: the file's name for people.
    """
    return [_problem(detail, model, place, file) for detail in error.errors(include_url=False)]


def _problem(
    detail: ErrorDetails, model: type[BaseModel], place: Callable[[Loc], Loc], file: str
) -> Problem:
    loc, value, kind = detail["loc"], detail["input"], detail["type"]
    context: dict[str, Any] = detail.get("ctx", {})
    match kind:
        case "extra_forbidden":
            # An unknown key may be a misspelt `env`: what stands there is never shown.
            return Problem(file, json_path(place(loc)), "", _unknown_key(model, loc))
        case "string_pattern_mismatch" if loc[-1] == "[key]":
            loc = loc[:-1]
            text = f"as a key, {_pattern(context)}"
        case "string_pattern_mismatch":
            text = _pattern(context)
        case "literal_error":
            text = f"allowed is {context['expected']}"
        case "greater_than" | "greater_than_equal" | "less_than" | "less_than_equal":
            words = kind.replace("_than_equal", " or equal").replace("_", " ")
            text = f"allowed is {words} {'to' if 'equal' in kind else ''} {_number(context)}"
            text = text.replace("  ", " ")
        case "value_error":
            text = str(context["error"])
            own = _OWN_CHECK.fullmatch(text)
            if own and own["key"] in model.model_fields:
                loc = (*loc, own["key"])
                value, text = (own["value"] or "''")[1:-1], own["text"]
            if isinstance(value, dict):
                return Problem(file, json_path(place(loc)), "", text)
        case _:
            text = _PHRASES.get(kind) or detail["msg"]
    shown = "" if kind == "missing" or value == "" else show_value(value, loc)
    return Problem(file, json_path(place(loc)), shown, text)


def _pattern(context: dict[str, Any]) -> str:
    pattern = context["pattern"]
    return f"allowed is {PATTERNS.get(pattern, pattern)}"


def _number(context: dict[str, Any]) -> str:
    number = next(context[key] for key in ("gt", "ge", "lt", "le") if key in context)
    return f"{number:g}"


def _unknown_key(model: type[BaseModel], loc: Loc) -> str:
    known = keys_at(model, loc[:-1])
    return unknown_key(str(loc[-1]), known, leaf_keys(model))


def unknown_key(key: str, known: list[str], elsewhere: list[str] = []) -> str:  # noqa: B006 - only read
    """The clause for a key that is not known, with the nearest one that is.

    Args:
        key: the unknown one.
        known: those allowed in its place.
        elsewhere: dotted keys of the whole record, for a key that stands one level off.
    """
    text = "unknown key"
    if near := difflib.get_close_matches(key, known, n=1):
        text += f", nearest is {near[0]!r}"
    elif same := [dotted for dotted in elsewhere if dotted.rpartition(".")[2] == key]:
        text += f", nearest is {same[0]!r}"
    return f"{text}; allowed are {', '.join(known)}"


def keys_at(model: type[BaseModel], loc: Loc) -> list[str]:
    """The keys of the record at that place."""
    for part in loc:
        for name, field in model.model_fields.items():
            if part in (name, field.alias) and (inner := record_type(field.annotation)):
                model = inner
    return [field.alias or name for name, field in model.model_fields.items()]


def leaf_keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    """Every dotted key below the record's tables, the way the documentation lists them."""
    keys = []
    for name, field in model.model_fields.items():
        dotted = prefix + (field.alias or name)
        if inner := record_type(field.annotation):
            keys += leaf_keys(inner, f"{dotted}.")
        else:
            keys.append(dotted)
    return keys


def record_type(annotation: object) -> type[BaseModel] | None:
    """The record that an annotation names, if it is one (or one or None)."""
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None
