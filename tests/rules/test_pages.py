"""Pages name tests that exist."""

import ast
import re

import pytest

from rules.tree import ROOT

NAMED = re.compile(r"(tests/[\w/]+\.py)(?:::(\w+))?")
PAGES = (
    "SECURITY.md",
    "README.md",
    "ARCHITECTURE.md",
    "DECISIONS.md",
    "CONTRIBUTING.md",
    "docs/OPERATE.md",
)


def exists(path, function):
    if not (ROOT / path).exists():
        return False
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    names = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return not function or function in names


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_only_tests_that_exist(page):
    named = NAMED.findall((ROOT / page).read_text(encoding="utf-8"))

    assert [f"{path}::{name}" for path, name in named if not exists(path, name)] == []


def test_every_promise_of_the_security_page_names_its_test():
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    table = page.split("## Protects", 1)[1].split("##", 1)[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]

    assert len(rows) > 10
    assert [row for row in rows if not NAMED.search(row)] == []
