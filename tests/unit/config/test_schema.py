from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from autobot_mcp_bridge.config.document import markdown
from autobot_mcp_bridge.config.explain import leaf_keys
from autobot_mcp_bridge.config.schema import servers_schema
from autobot_mcp_bridge.config.unbuilt import NOT_OF_UNITS, UNBUILT
from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.model.server import ServerSpec
from support.configured import SMALL, loaded_from, places_in

PAGE = Path(__file__).parents[3] / "docs" / "CONFIGURATION.md"
FULL = {
    **SMALL,
    "tenant": "acme",
    "project": "web",
    "env": {"LOG_LEVEL": "info"},
    "paths": {"read": ["/srv"], "write": []},
    "tokens_sha256": ["0" * 64],
    "tools": {"allow": ["read_*"], "deny": []},
    "profile": "node",
    "network": {"mode": "none"},
    "limits": {"memory": "512M", "cpu": "100%", "tasks": 128, "open_files": 1024},
    "warm": False,
    "timeouts": {"start": "30s", "call": 60, "idle": "5m", "stop": "10s"},
    "breaker": {"crashes": 5, "window": "60s", "probe": True},
}


def test_the_page_in_docs_is_what_the_model_generates():
    assert PAGE.read_text(encoding="utf-8") == markdown()


@pytest.mark.parametrize("model", [ServerSpec, HostSettings])
def test_every_key_of_the_model_stands_in_the_page(model):
    page = markdown()

    assert [key for key in leaf_keys(model) if f"| `{key}` |" not in page] == []


def test_what_is_not_built_is_said_in_the_page():
    rows = [line for line in markdown().splitlines() if line.startswith("| `")]

    marked = {row.split("`")[1] for row in rows if "not built yet" in row}
    assert marked == {*UNBUILT, *NOT_OF_UNITS}


@pytest.mark.parametrize(
    ("servers", "more", "right"),
    [
        ([SMALL, FULL], {}, True),
        ([], {"defaults": {"limits": {"memory": 67108864}, "warm": True}}, True),
        ([SMALL], {"$schema": "./servers.schema.json"}, True),
        ([{"name": "a"}, {"command": ["x"]}], {}, False),
        ([{**SMALL, "unknown": 1}], {}, False),
        ([{**SMALL, "limits": {"unknown": 1}}], {}, False),
        ([{**SMALL, "limits": {"memory": "lots"}}], {}, False),
        ([{**SMALL, "warm": "yes"}], {}, False),
        ([{**SMALL, "name": "A"}], {}, False),
        ([], {"defaults": {"name": "a"}}, False),
        ([], {"defaults": {"unknown": 1}}, False),
        ([], {"version": 2}, False),
        ([], {"unknown": 1}, False),
    ],
)
def test_an_editor_with_the_schema_and_the_reader_agree(tmp_path, servers, more, right):
    schema = servers_schema()
    Draft202012Validator.check_schema(schema)
    document = {"version": 1, "servers": servers, **more}

    loaded = loaded_from(places_in(tmp_path), *servers, **more)

    assert Draft202012Validator(schema).is_valid(document) is right
    assert (loaded.problems == ()) is right
