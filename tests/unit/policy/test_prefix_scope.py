"""Whatever an agent says, a path that passes ends below its own directory."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.policy.scopes import AgentContext, ScopeViolation
from autobot_mcp_bridge.policy.scopes.prefix import PrefixScope

AGENT = AgentContext("research-01", "research")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    base = tmp_path_factory.mktemp("base")
    home = base / "agents" / AGENT.agent_id
    (home / "d" / "e").mkdir(parents=True)
    (home / "f").write_text("x", encoding="utf-8")
    (home / "d" / "l").symlink_to("/etc")
    (home / "u").symlink_to("..")
    (home / "h").symlink_to("d")
    (base / "agents" / "other").mkdir()
    return base


STEPS = st.sampled_from(
    ["", ".", "..", "d", "e", "f", "l", "u", "h", "agents", "other", "research-01", "...", "\x00", "é", "~"]
)  # fmt: skip


@given(st.lists(STEPS, max_size=6), st.booleans(), st.booleans())
def test_what_passes_is_below_the_agent_s_directory_however_it_is_said(base, steps, absolute, own):
    start = f"{base}/agents/{AGENT.agent_id}/" if own else f"{base}/"
    said = (start if absolute else "") + "/".join(steps)
    scope = PrefixScope(str(base))
    applied = scope.apply(said, AGENT)
    try:
        scope.enforce(applied, AGENT)
    except ScopeViolation:
        return
    home = base / "agents" / AGENT.agent_id
    assert Path(os.path.realpath(applied)).is_relative_to(home)
    assert Path(applied).is_relative_to(home)


@given(st.text(max_size=40))
def test_no_text_breaks_it(base, said):
    scope = PrefixScope(str(base))
    try:
        scope.enforce(scope.apply(said, AGENT), AGENT)
    except ScopeViolation:
        return
    assert ".." not in Path(said).parts


def test_an_agent_s_directory_that_is_a_link_is_none(tmp_path):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / AGENT.agent_id).symlink_to("/etc")
    scope = PrefixScope(str(tmp_path))
    with pytest.raises(ScopeViolation):
        scope.enforce(scope.apply("passwd", AGENT), AGENT)


def test_a_directory_that_is_not_there_yet_leads_nowhere_else(tmp_path):
    scope = PrefixScope(str(tmp_path))
    scope.enforce(scope.apply("new/file", AGENT), AGENT)


@pytest.mark.parametrize("base_path", ["srv", "", "/srv/../etc"])
def test_a_base_that_is_ambiguous_is_refused(base_path):
    with pytest.raises(ValueError, match="absolute path"):
        PrefixScope(base_path)
