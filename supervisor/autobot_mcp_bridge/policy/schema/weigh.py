"""What checking against a schema may cost: found before anything is checked.

A schema is a stranger's text, and a few references in it make a check exponential: 30 definitions
that each name the next one twice are 2^30 checks of one value. Nothing can stop a check that has
begun, so one whose bound is too high is not begun.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

# Of one schema: subschemas, patterns (to compile one holds the loop), levels.
MAX_SUBSCHEMAS = 2000
MAX_PATTERNS = 64
MAX_DEPTH = 100
# Places times subschemas up to which each place is weighed by itself; beyond it all together, which
# is quicker and says more than there is.
MAX_APART = 5000
# A weight above this counts as without end.
ENDLESS = 10_000_000

_HERE = ("not", "if", "then", "else")
_HERE_LISTS = ("allOf", "anyOf", "oneOf")
_HERE_MAPS = ("dependentSchemas",)
_MEMBERS = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_ITEMS = ("items", "additionalItems", "unevaluatedItems", "contains")
# References whose target depends on how the checker came there.
_DYNAMIC = ("$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor")
_ITEM, _ANY = 0, 1  # classes of places below a value, beside each named member


class SchemaError(Exception):
    """The schema cannot be used; the message says why, in few words and without quoting it."""


@dataclass(slots=True)
class _Node:
    own: int  # what one application of it costs by itself
    patterns: int
    here: list[int] = field(default_factory=list)  # applied to the same value
    below: list[tuple[str | int, int]] = field(default_factory=list)  # class of place, subschema


class Weight:
    """Bounds of one schema: checks of one value, and patterns tried on one text, by depth."""

    def __init__(self, schema: Any) -> None:
        """Raises SchemaError if it has a form that nobody can weigh."""
        self._nodes: list[_Node] = []
        self._by_place: dict[int, int] = {}
        self._root = schema
        self._refs: list[tuple[int, str]] = []
        self._add(schema, 0)
        for number, ref in self._refs:
            self._nodes[number].here.append(self._target(ref))
        self._order = self._sorted()
        self.patterns = sum(node.patterns for node in self._nodes)
        if self.patterns > MAX_PATTERNS:
            raise SchemaError(f"it has more than {MAX_PATTERNS} patterns")
        self._levels = [self._closed(Counter({0: 1}))]
        self._heaviest = [self._totals(self._levels[0])]

    def at(self, depth: int) -> tuple[int, int]:
        """The most checks, and patterns tried, of any one value that lies at most so deep."""
        while len(self._heaviest) <= depth:
            if self._heaviest[-1][0] >= ENDLESS or not self._levels[-1]:
                return self._heaviest[-1]
            below = self._next(self._levels[-1])
            if below == self._levels[-1]:
                return self._heaviest[-1]
            self._levels.append(below)
            self._heaviest.append(tuple(map(max, self._totals(below), self._heaviest[-1])))  # type: ignore[arg-type]
        return self._heaviest[depth]

    def _totals(self, counts: "Counter[int]") -> tuple[int, int]:
        nodes = [(self._nodes[number], count) for number, count in counts.items()]
        checks = sum(node.own * count for node, count in nodes)
        return min(checks, ENDLESS), sum(node.patterns * count for node, count in nodes)

    def _next(self, counts: "Counter[int]") -> "Counter[int]":
        """How often each subschema is applied to one value a level below: the most of any place."""
        places: dict[str | int, Counter[int]] = {}
        for number, count in counts.items():
            for place, child in self._nodes[number].below:
                places.setdefault(place, Counter())[child] += count
        everywhere = places.pop(_ANY, Counter())
        apart = len(places) * len(self._nodes) <= MAX_APART
        most = self._closed(everywhere) if apart else Counter(everywhere)
        for place, found in places.items():
            here = found if place == _ITEM else found + everywhere
            most |= self._closed(here) if apart else here
        return most if apart else self._closed(most)

    def _closed(self, counts: "Counter[int]") -> "Counter[int]":
        """With what is applied to the same value besides."""
        total = Counter(counts)
        for number in self._order:
            if count := total[number]:
                for other in self._nodes[number].here:
                    total[other] = min(total[other] + count, ENDLESS)
        return +total

    def _sorted(self) -> list[int]:
        """Every node before those that it applies to the same value (Kahn's algorithm)."""
        waiting = Counter(other for node in self._nodes for other in node.here)
        ready = [number for number in range(len(self._nodes)) if not waiting[number]]
        order = []
        while ready:
            order.append(number := ready.pop())
            for other in self._nodes[number].here:
                waiting[other] -= 1
                if not waiting[other]:
                    ready.append(other)
        if len(order) < len(self._nodes):
            raise SchemaError("it refers to itself for one and the same value")
        return order

    def _add(self, schema: Any, depth: int) -> int:
        """A subschema and all within; one that is reached twice is one."""
        known = self._by_place.get(id(schema)) if isinstance(schema, dict) else None
        if known is not None:
            return known
        if len(self._nodes) >= MAX_SUBSCHEMAS or depth > MAX_DEPTH:
            text = f"it has more than {MAX_SUBSCHEMAS} subschemas, or {MAX_DEPTH} levels of them"
            raise SchemaError(text)
        number = len(self._nodes)
        node = _Node(1, 0)
        self._nodes.append(node)
        if not isinstance(schema, dict):
            return number
        self._by_place[id(schema)] = number
        if any(key in schema for key in _DYNAMIC) or (number and "$id" in schema):
            raise SchemaError("it has references that depend on where it stands")
        allowed = schema.get("enum")
        required = schema.get("required")
        for listed in (allowed, required):
            node.own += len(listed) if isinstance(listed, list) else 0
        named = schema.get("patternProperties")
        node.patterns = ("pattern" in schema) + (len(named) if isinstance(named, dict) else 0)
        if isinstance(ref := schema.get("$ref"), str):
            self._refs.append((number, ref))
        node.here += (self._add(inner, depth + 1) for inner in _here(schema))
        node.below += ((place, self._add(inner, depth + 1)) for place, inner in _below(schema))
        return number

    def _target(self, ref: str) -> int:
        """The subschema that a reference names: of this very schema, by a JSON pointer (RFC 6901)."""
        if ref != "#" and not ref.startswith("#/"):
            raise SchemaError("it refers to something outside it")
        found = self._root
        for part in ref.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                raise SchemaError("it refers to something that is not there")
        return self._add(found, 0)


def _here(schema: dict[str, Any]) -> Iterator[Any]:
    for key in _HERE:
        if key in schema:
            yield schema[key]
    for key in _HERE_LISTS:
        if isinstance(schema.get(key), list):
            yield from schema[key]
    for key in _HERE_MAPS:
        if isinstance(schema.get(key), dict):
            yield from schema[key].values()


def _below(schema: dict[str, Any]) -> Iterator[tuple[str | int, Any]]:
    if isinstance(members := schema.get("properties"), dict):
        yield from members.items()
    if isinstance(members := schema.get("patternProperties"), dict):
        for inner in members.values():
            yield _ANY, inner
    for key in _MEMBERS:
        if key in schema:
            yield _ANY, schema[key]
    for key in _ITEMS:
        inner = schema.get(key)
        for each in inner if isinstance(inner, list) else (inner,) if key in schema else ():
            yield _ITEM, each
    if isinstance(items := schema.get("prefixItems"), list):
        for inner in items:
            yield _ITEM, inner
