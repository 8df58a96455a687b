"""What the tools of policed.py say of themselves."""

TOOLS = [
    {
        "name": "read_note",
        "title": "Read a note",
        "description": "Reads one note, é and all",
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "where", "format": "path"},
                "paths": {"type": "array", "items": {"type": "string"}},
                "text": {"type": "string", "maxLength": 100000},
                "size": {"type": "integer", "minimum": 0, "maximum": 10},
                "kind": {"enum": ["a", "b"]},
                "deep": {"type": "object"},
            },
            "additionalProperties": False,
        },
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "annotations": {"readOnlyHint": True, "title": "t", "vendor": [1, None]},
        "_meta": {"vendor/x": 1.5},
    },
    {
        "name": "write-note",
        "description": "Writes one",
        "inputSchema": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
            "required": ["text"],
        },
        "annotations": {"readOnlyHint": False},
    },
    {"name": "plain", "inputSchema": {"type": "object"}},
    {"name": "state", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "answer", "inputSchema": {"type": "object"}},
    {"name": "wait", "inputSchema": {"type": "object"}},
    {"name": "odd", "inputSchema": {"type": "objekt"}},
    {"name": "far", "inputSchema": {"$ref": "http://127.0.0.1:9/schema"}},
    {
        "name": "costly",
        "inputSchema": {
            "$defs": {
                **{
                    f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
                    for n in range(30)
                },
                "d30": {"type": "object"},
            },
            "$ref": "#/$defs/d0",
        },
    },
]  # fmt: skip
