"""Names of units and object paths, each from the other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.supervision.unit_paths import Kind, path_of, unit_at, unit_of

INSTANCE = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,30}[a-z0-9])?", fullmatch=True)


def test_a_path_is_as_systemd_writes_it():
    path = "/org/freedesktop/systemd1/unit/autobot_2dmcp_2dbridge_40acme_2efiles_2eservice"

    assert path_of("autobot-mcp-bridge@acme.files.service") == path
    assert path_of("0d8c").endswith("/_30d8c")


@given(INSTANCE, st.sampled_from(Kind))
def test_a_unit_s_name_comes_back_from_its_path(instance, kind):
    unit = unit_of(instance, kind)

    assert unit_at(path_of(unit)) == unit


@pytest.mark.parametrize(
    "unit", ["ssh.service", "mcp-bridge@files.service", "autobot-mcp-bridge.target"]
)
def test_a_unit_of_others_has_no_name_here(unit):
    assert unit_at(path_of(unit)) == ""
