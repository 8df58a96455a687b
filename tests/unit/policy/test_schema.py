"""A stranger's schema: what it may cost is bounded before anything is checked against it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.policy.schema.validate import BUDGET, Schema, measure, schema_of
from autobot_mcp_bridge.policy.schema.weigh import ENDLESS, SchemaError, Weight


def cause(schema, arguments):
    try:
        Schema(schema).check(arguments)
    except CallError as error:
        return error.cause
    return None


def doubling(times):
    """Each definition names the next one twice."""
    both = [{"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(times)]
    defs = {f"d{n}": {**each, "title": str(n)} for n, each in enumerate(both)}
    return {"$defs": {**defs, f"d{times}": {}}, "$ref": "#/$defs/d0"}


TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"left": {"$ref": "#/$defs/node"}, "right": {"$ref": "#/$defs/node"}},
        }
    },
    "$ref": "#/$defs/node",
}
TWICE = {
    "$defs": {
        "n": {
            "allOf": [
                {"properties": {"a": {"$ref": "#/$defs/n"}}, "maxProperties": 3},
                {"properties": {"a": {"$ref": "#/$defs/n"}}, "maxProperties": 4},
            ]
        }
    },
    "$ref": "#/$defs/n",
}
JSON_VALUE = {
    "$defs": {
        "value": {
            "anyOf": [
                {"type": ["string", "number", "boolean", "null"]},
                {"type": "array", "items": {"$ref": "#/$defs/value"}},
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/value"}},
            ]
        }
    },
    "type": "object",
    "additionalProperties": {"$ref": "#/$defs/value"},
}


def nested(depth, name="a"):
    value = {}
    for _ in range(depth):
        value = {name: value}
    return value


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (doubling(30), {}),
        (TWICE, nested(200)),
        ({"properties": {"a": {"items": {"enum": list(range(5000))}}}}, {"a": list(range(2000))}),
        ({"properties": {"t": {"pattern": "(?=a)(a|aa)+$"}}}, {"t": "a" * 100_000}),
    ],
)
def test_a_check_that_could_take_long_is_not_begun(schema, arguments):
    assert cause(schema, arguments) is Cause.SCHEMA_UNUSABLE


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (doubling(8), {}),
        (TREE, nested(100, "left")),
        (TWICE, nested(8)),
        (JSON_VALUE, {"a": [1, {"b": [None, "x"] * 20}]}),
        ({"properties": {"text": {"type": "string", "maxLength": 5_000_000}}}, {"text": "x" * 4_000_000}),
        ({"properties": {"t": {"pattern": "^(?!x)[a-z]+$"}}}, {"t": "abc"}),
        ({"properties": {"t": {"pattern": "^(a+)+$"}}}, {"t": "a" * 50_000}),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}, {"a": 1}),
    ],
)  # fmt: skip
def test_schemas_as_they_are_pass_what_fits(schema, arguments):
    assert cause(schema, arguments) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"$ref": "http://127.0.0.1:9/x"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#"},
        {"$ref": "#/$defs/none"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"$schema": "http://127.0.0.1:9/own"},
        {"$dynamicRef": "#x"},
        {"properties": {"a": {"$id": "http://x/y", "$ref": "z"}}},
        {"pattern": "(a{1000}){1000}"},
        {"pattern": "("},
        {"anyOf": [{"pattern": str(n)} for n in range(100)]},
        {"anyOf": [{"const": n} for n in range(3000)]},
        {"properties": 5},
        {"allOf": {}},
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_without_a_look_elsewhere(schema):
    with pytest.raises(SchemaError):
        Schema(schema)


def test_a_deep_schema_is_refused():
    schema = {}
    for _ in range(240):
        schema = {"properties": {"a": schema}}
    with pytest.raises(SchemaError):
        Schema(schema)


def test_what_is_no_object_is_no_schema():
    for raw in ([], "x", 5, False):
        with pytest.raises(SchemaError):
            schema_of({"inputSchema": raw})
    for raw in ({}, {"inputSchema": None}, {"inputSchema": {}}, {"inputSchema": True}):
        schema_of(raw).check({"anything": 1})


def test_equal_schemas_are_made_once():
    made = [schema_of({"inputSchema": {"type": "object", "title": "once"}}) for _ in range(2)]
    assert made[0] is made[1]


def test_a_weight_is_a_bound_of_what_is_checked():
    assert Weight(TREE).at(100) == Weight(TREE).at(3)  # each place is reached in one way only
    assert Weight(TWICE).at(20)[0] > 2**20
    assert Weight(doubling(40)).at(0)[0] == ENDLESS


def test_a_number_of_many_digits_cannot_be_checked():
    from autobot_mcp_bridge.channels import jsonrpc

    arguments = jsonrpc.loads(b'{"n": 123456789012345678901234567890}')
    assert cause({"properties": {"n": {"type": "integer"}}}, arguments) is Cause.SCHEMA_MISMATCH


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip
SCHEMAS = st.recursive(
    st.sampled_from(
        [{}, True, False, {"type": "string"}, {"type": "integer"}, {"enum": [1, "a"]}, {"$ref": "#/$defs/x"}]
    ),
    lambda inner: st.one_of(
        st.builds(lambda a: {"properties": {"a": a}}, inner),
        st.builds(lambda a: {"items": a}, inner),
        st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner),
        st.builds(lambda a, b: {"allOf": [a, b]}, inner, inner),
        st.builds(lambda a: {"not": a}, inner),
        st.builds(lambda a: {"additionalProperties": a, "required": ["a"]}, inner),
    ),
    max_leaves=8,
)  # fmt: skip


@given(SCHEMAS, VALUES, VALUES)
def test_what_fits_is_what_the_reference_implementation_says(schema, one, other):
    whole = {"$defs": {"x": {"type": "object"}}, "properties": {"a": schema}, "maxProperties": 2}
    for arguments in ({"a": one}, {"a": one, "b": other}):
        fits = Draft202012Validator(whole).is_valid(arguments)
        assert (cause(whole, arguments) is None) is fits


@given(VALUES)
def test_a_measure_counts_every_value(value):
    def counted(one):
        if isinstance(one, dict):
            return 1 + sum(map(counted, one.values()))
        return 1 + sum(map(counted, one)) if isinstance(one, list) else 1

    assert measure(value)[0] == counted(value)
    assert measure(value)[0] < BUDGET


@given(st.dictionaries(st.text(max_size=4), VALUES) | VALUES)
def test_no_schema_breaks_the_weighing(schema):
    for each in (schema, {"allOf": schema}, {"properties": schema}, {"items": schema}):
        try:
            schema_of({"inputSchema": each}).check({"a": 1})
        except (SchemaError, CallError):
            continue
