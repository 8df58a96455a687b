"""What a manifest may say: scoped-mcp's format, every mistake at once, never a value."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.policy.manifest.check import check
from autobot_mcp_bridge.policy.manifest.load import ManifestFiles
from autobot_mcp_bridge.policy.manifest.text import MAX_BYTES, MAX_VALUES, Expansion, parse

SMALL = {"agent_type": "research", "modules": {"notes": {"type": "mcp_proxy"}}}
SECRET = "s3cret-value-4711"
# In the format of scoped-mcp, every key that it knows and that is honoured, or noted, here.
FULL = """
agent_type: ops_1
description: An agent
modules:
  notes:
    type: mcp_proxy
    mode: ""
    optional: true
    dependency_wait_timeout_seconds: 0
    config:
      url: http://127.0.0.1:8485/mcp
      headers: {X-A: b}
      tool_allowlist: []
      tool_denylist: [drop_*]
      discovery_timeout_seconds: 10.0
      max_binary_bytes: 0
  mcp_proxy:
    mode: read
    config: {command: /usr/bin/x, args: [a], env: {A: b}}
credentials: {source: file, path: /run/x.yml, strict_permissions: false}
state_backend: {type: in_process}
rate_limits: {global: 100/minute, per_tool: {notes_write_*: 5/hour}}
argument_filters:
  - {name: a, pattern: "(?i)secret", fields: [path], decode: [url, base64, urlsafe_base64]}
response_filters:
  - {name: b, pattern: x, action: redact, case_insensitive: true}
hitl:
audit: {log_args: true}
content_limits: {max_binary_bytes: 5}
max_auto_risk: low
interaction_permissions: {auto_approved: [a], needs_approval: []}
workspace_access: [{path: /a, access: readonly}]
"""


def checked(value):
    return check(value, "m.yml", shared=False)


def wrong(value):
    return [str(problem) for problem in checked(value)[1]]


@pytest.mark.requirement("SM-13", "SM-14")
def test_a_manifest_with_every_key_that_is_honoured_loads_from_yaml_and_from_json():
    value = yaml.safe_load(FULL)
    for data, name in ((FULL.encode(), "m.yml"), (json.dumps(value).encode(), "m.json")):
        parsed, problems = parse(data, Path(name))
        assert not problems
        found, problems = checked(parsed)
        assert not problems
        assert found.manifest.agent_type == "ops_1"
        assert found.proxies["notes"][0].mode is None
        assert found.proxies["mcp_proxy"][0].mode == "read"


def test_what_means_nothing_here_is_noted_with_its_place():
    found, _ = checked(yaml.safe_load(FULL))
    notes = "\n".join(found.notes)

    for place in (
        "modules.notes.config.url",
        "modules.notes.config.headers",
        "modules.notes.optional",
        "modules.mcp_proxy.config.command",
        "modules.mcp_proxy.config.args",
        "modules.mcp_proxy.config.env",
        "$.credentials",
    ):
        assert place in notes


@pytest.mark.requirement("SM-24")
@pytest.mark.parametrize("glob", ["notes.*", "write_*", "other_x", "notes"])
def test_a_pattern_that_can_match_no_tool_is_noted(glob):
    found, _ = checked({**SMALL, "rate_limits": {"per_tool": {glob: "1/hour"}}})
    assert any("no tool of a module" in note for note in found.notes)


@pytest.mark.parametrize("glob", ["notes_*", "*", "n*", "notes_a", "[a-z]*_a", "notes?a"])
def test_a_pattern_that_can_match_is_not(glob):
    found, _ = checked({**SMALL, "rate_limits": {"per_tool": {glob: "1/hour"}}})
    assert found.notes == ()


KINDS = ("filesystem", "sqlite", "http_proxy", "grafana", "influxdb", "ntfy", "smtp", "matrix")


@pytest.mark.parametrize("kind", [*KINDS, "slack_webhook", "discord_webhook"])
def test_a_module_that_is_not_to_be_had_is_named_as_such(kind):
    for module, place in (({kind: {}}, kind), ({"x": {"type": kind}}, "x.type")):
        (told,) = wrong({**SMALL, "modules": module})
        assert f"$.modules.{place}" in told and "scoped-mcp's own" in told


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"hitl": {"approval_required": ["*"]}}, "$.hitl"),
        ({"credentials": {"source": "vault", "vault": {"addr": SECRET}}}, "$.credentials.source"),
        ({"state_backend": {"type": "dragonfly"}}, "$.state_backend.url"),
        ({"audit": {"log_args": False}}, "$.audit.log_args"),
        ({"audit": {"agent_bus_emit": True}}, "$.audit.agent_bus_emit"),
        ({"no_such": SECRET}, "$.no_such"),
        ({"rate_limits": {"global": SECRET}}, "$.rate_limits.global"),
        ({"rate_limits": {"per_tool": {"a": "1/day"}}}, "$.rate_limits.per_tool.a"),
        (
            {"argument_filters": [{"name": "a", "pattern": "(?=x)"}]},
            "$.argument_filters[0].pattern",
        ),
        ({"argument_filters": [{"name": "a", "pattern": f"({SECRET}"}]}, "[0].pattern"),
        ({"argument_filters": [{"name": "a", "pattern": "x", "fields": []}]}, "[0].fields"),
        ({"argument_filters": [{"name": "a", "pattern": "x", "action": "redact"}]}, "[0].action"),
        ({"response_filters": [{"name": "a", "pattern": "x", "decode": ["rot13"]}]}, "decode[0]"),
        ({"content_limits": {"max_binary_bytes": -1}}, "$.content_limits.max_binary_bytes"),
        ({"agent_type": "Research\n"}, "$.agent_type"),
        ({"agent_type": "a" * 64}, "$.agent_type"),
        ({"modules": {}}, "$.modules"),
        ({"modules": {"notes": {"type": "mcp_proxy", "mode": "execute"}}}, "$.modules.notes.mode"),
        ({"modules": {"a": {"type": "mcp_proxy", "config": {"urls": SECRET}}}}, "a.config.urls"),
        (
            {"modules": {"a": {"type": "mcp_proxy", "config": {"url": "x", "command": "y"}}}},
            "a.config.url",
        ),
    ],
)
@pytest.mark.requirement("SM-F9")
def test_a_mistake_is_told_with_its_path_and_without_its_value(settings, place):
    told = wrong({**SMALL, **settings})
    assert any(place in each for each in told), told
    assert SECRET not in "".join(told)


def test_all_mistakes_are_told_at_once():
    told = wrong(
        {
            "modules": {"a": {"type": "mcp_proxy", "mode": "x", "config": {"b": 1}}, "sqlite": {}},
            "hitl": {"shadow": ["*"]},
            "rate_limits": {"global": "1"},
        }
    )
    for word in ("agent_type", "a.mode", "a.config.b", "modules.sqlite", "rate_limits.global"):
        assert any(word in each for each in told), word


def test_what_a_scope_names_must_be_there():
    def scope(**settings):
        config = {"scopes": [{"arguments": ["path"], **settings}]}
        return wrong({**SMALL, "modules": {"notes": {"type": "mcp_proxy", "config": config}}})

    assert scope(strategy="prefix", config={"base_path": "/srv"}) == []
    assert scope(strategy="namespace") == []
    assert "scopes[0].strategy" in scope(strategy="nothing")[0]
    assert "scopes[0].config" in scope(strategy="prefix")[0]
    assert "scopes[0].config" in scope(strategy="prefix", config={"base_path": "srv"})[0]
    assert "scopes[0].config" in scope(strategy="namespace", config={"x": 1})[0]


# ---- text ----


@pytest.mark.requirement("SM-12")
def test_all_missing_variables_are_named_at_once_and_no_value_is():
    expansion = Expansion({"THERE": SECRET})
    expansion.of({"a": "${B_MISSING} ${THERE}", "b": ["${A_MISSING}", {"c": "$NOT ${not-one}"}]})
    (told,) = expansion.problems("m.yml")

    assert "A_MISSING, B_MISSING" in str(told)
    assert SECRET not in str(told)


def test_a_value_cannot_change_the_structure():
    expansion = Expansion({"A": "x\nmodules: {evil: {}}", "B": "${A}"})
    found = expansion.of({"${A}": "${A}", "b": "${B}"})

    # Keys stand for themselves, and what a variable holds is not looked through again.
    assert found == {"${A}": "x\nmodules: {evil: {}}", "b": "${A}"}


def test_a_number_can_come_of_a_variable():
    value = Expansion({"N": "5"}).of({**SMALL, "content_limits": {"max_binary_bytes": "${N}"}})
    assert checked(value)[0].manifest.content_limits.max_binary_bytes == 5


@pytest.mark.parametrize(
    "text",
    [
        f"a: 1\nb: {SECRET}\na: 2\n",
        f"a: [{SECRET}",
        f"a: *{SECRET.replace('-', '')}",
        f"a: !!python/object:os.system {SECRET}",
        "a: &a [*a]",
        "[" * 5000,
        "a: !!binary eHg=",
        "1: x",
        "a: \x00",
        "---\na: 1\n---\nb: 2\n",
        "a: 1" + " " * MAX_BYTES,
        "? {a: b}\n: c",
        "a: !!set {b}",
        "a: .inf",
    ],
)
def test_yaml_that_is_ambiguous_boundless_or_none_is_refused_without_being_quoted(text):
    value, problems = parse(text.encode(), Path("m.yml"))
    expansion = Expansion({})
    if not problems:
        problems = [*expansion.problems("m.yml"), *checked(expansion.of(value))[1]]
    assert problems
    assert SECRET not in "".join(map(str, problems))


def test_many_values_out_of_few_bytes_are_refused_quickly():
    text = "a0: &a0 [x, x]\n" + "".join(
        f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)
    )
    value, problems = parse(text.encode(), Path("m.yml"))
    expansion = Expansion({})
    expansion.of(value)

    assert not problems
    assert str(MAX_VALUES) in str(expansion.problems("m.yml")[0])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
KEYS = st.sampled_from(
    ["agent_type", "modules", "rate_limits", "argument_filters", "hitl", "audit", "credentials"]
)


@given(st.dictionaries(KEYS, JSON))
def test_no_value_breaks_the_check(value):
    found, problems = checked(value)
    assert (found is None) == bool(problems)


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_no_text_breaks_the_reader(data):
    for name in ("m.yml", "m.json"):
        value, problems = parse(data, Path(name))
        if not problems:
            checked(Expansion({}).of(value))


@given(st.text(alphabet="ab:{}[]&*!-?|>'\"#%@, \n\t0", max_size=200))
def test_no_yaml_breaks_the_reader(text):
    value, problems = parse(text.encode(), Path("m.yml"))
    assert problems or checked(Expansion({}).of(value)) is not None


# ---- files ----


def write(directory, name, value):
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(json.dumps(value), encoding="utf-8")


def test_without_the_directory_no_manifest_speaks_for_anybody(tmp_path):
    found = ManifestFiles(tmp_path / "manifests.d", {}).scan()
    assert (found.present, found.problems) == (False, ())
    (tmp_path / "manifests.d").mkdir()
    assert ManifestFiles(tmp_path / "manifests.d", {}).scan().present


def test_a_file_with_a_mistake_keeps_its_last_good_state_and_holds_up_no_other(tmp_path):
    files = ManifestFiles(tmp_path, {})
    write(tmp_path, "a.yml", SMALL)
    write(tmp_path, "b.json", {**SMALL, "agent_type": "b"})
    assert set(files.scan().by_type) == {"research", "b"}
    write(tmp_path, "a.yml", {**SMALL, "hitl": {"shadow": ["*"]}})
    write(tmp_path, "b.json", {**SMALL, "agent_type": "c"})
    found = files.scan()
    assert set(found.by_type) == {"research", "c"}
    assert len(found.problems) == 1
    (tmp_path / "a.yml").unlink()
    assert set(files.scan().by_type) == {"c"}


def test_two_files_of_one_agent_type_count_both_not(tmp_path):
    write(tmp_path, "a.yml", SMALL)
    write(tmp_path, "b.yml", SMALL)
    write(tmp_path, ".hidden.yml", SMALL)
    write(tmp_path, "notes.txt", SMALL)
    found = ManifestFiles(tmp_path, {}).scan()

    assert found.by_type == {}
    assert "a.yml, b.yml" in str(found.problems[0])


def test_the_variables_that_hold_values_are_told(tmp_path):
    write(tmp_path, "a.yml", {**SMALL, "description": "${A_VARIABLE}"})
    found = ManifestFiles(tmp_path, {"A_VARIABLE": "x", "OTHER": "y"}).scan()
    assert found.variables == {"A_VARIABLE": "x"}
