"""The table of removals: none is stale, and each is of a requirement that its test claims."""

import ast

import pytest

from removals.importing import SOURCES
from removals.table import REMOVALS
from requirements import BY_ID
from support.fakes import SERVERS

TESTS = SERVERS.parent


def test_most_lines_of_the_protocol_can_be_taken_away():
    found = {name.split()[0] for name in REMOVALS}
    assert found <= BY_ID.keys()
    assert len(found) >= 60


@pytest.mark.parametrize("name", REMOVALS)
def test_a_removal_changes_a_text_that_is_there_once_and_leaves_python(name):
    removal = REMOVALS[name]
    source = (SOURCES / removal.module).read_text(encoding="utf-8")

    changed = removal.changed(source)

    assert changed != source
    ast.parse(changed)


@pytest.mark.parametrize("name", REMOVALS)
def test_the_test_of_a_removal_claims_its_requirement(name):
    """Or a probe does, which is a case of test_probes.py."""
    file, _, test = REMOVALS[name].test.partition("::")
    text = (TESTS / file).read_text(encoding="utf-8")
    if file == "conformance/test_probes.py":
        return
    before = text[: text.index(f"def {test.partition('[')[0]}(")]

    assert f'"{name.split()[0]}"' in before[before.rindex("\n\n") :]
