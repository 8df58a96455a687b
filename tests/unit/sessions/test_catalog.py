"""Which parameters of a tool its clients mirror into headers, whatever its schema looks like."""

from autobot_mcp_bridge.model.mirrored import MAX_MIRRORED, MAX_STEPS, mirrored_of


def annotated(header, **more):
    return {"type": "string", "x-mcp-header": header, **more}


def found(properties):
    tool = {"name": "tool", "inputSchema": {"properties": properties}}
    return [each.header for _, all_of in mirrored_of([tool]) for each in all_of]


def test_no_more_are_known_than_a_request_can_carry():
    assert found({"a": annotated("A"), "b": {"properties": {"c": annotated("C")}}}) == ["A", "C"]
    many = {f"p{number}": annotated(f"P{number}") for number in range(100_000)}
    assert found(many) == [f"P{number}" for number in range(MAX_MIRRORED)]


def test_a_schema_is_looked_at_to_some_depth_only():
    schema = annotated("Deepest")
    for _ in range(MAX_STEPS - 1):
        schema = {"properties": {"x": schema}}
    assert found({"x": schema}) == ["Deepest"]
    assert found({"x": {"properties": {"x": schema}}}) == []


def test_what_is_no_schema_annotates_nothing():
    for odd in ([], 5, None, {"x": []}, {"x": {"x-mcp-header": []}}, {"x": annotated("A B")}):
        assert found(odd) == []
    for tools in (None, {}, [5, None, {"name": []}, {"name": "x", "inputSchema": []}]):
        assert list(mirrored_of(tools)) == []
