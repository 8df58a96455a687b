"""Imports go down one list of packages only, and each outside system has one importer."""

from pathlib import Path

import pytest

from rules.tree import PACKAGE, imported, modules, shown

# A package may import from those below it and from itself (ARCHITECTURE.md).
ORDER = (
    "cli",
    "connect",
    "diagnosis",
    "proxy",
    "sessions",
    "policy",
    "channels",
    "runtimes",
    "supervision",
    "units",
    "egress",
    "upstream",
    "config",
    "model",
)
NAME = PACKAGE.name


def layer(dotted: str) -> str | None:
    """Return the package of ours that a dotted name lies in; None for anything else."""
    parts = dotted.split(".")
    return parts[1] if parts[0] == NAME and len(parts) > 1 and parts[1] in ORDER else None


def upward(module: Path) -> list[str]:
    own = module.relative_to(PACKAGE).parts[0].removesuffix(".py")
    # A module outside every layer (the package's own __init__) is below all of them.
    height = ORDER.index(own) if own in ORDER else len(ORDER)
    found = ((name, layer(name)) for name in imported(module))
    return [
        f"{shown(module)} imports {name}"
        for name, other in found
        if other is not None and ORDER.index(other) < height
    ]


def test_every_package_has_its_place_in_the_order():
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}

    assert packages == set(ORDER)


def test_no_module_imports_from_a_package_above_its_own():
    assert [fault for module in modules() for fault in upward(module)] == []


def test_an_upward_import_would_be_found(tmp_path, monkeypatch):
    monkeypatch.setattr("rules.tree.PACKAGE", tmp_path / NAME)
    monkeypatch.setattr("rules.tree.ROOT", tmp_path)
    monkeypatch.setitem(upward.__globals__, "PACKAGE", tmp_path / NAME)
    module = tmp_path / NAME / "model" / "wrong.py"
    module.parent.mkdir(parents=True)
    module.write_text(f"def f():\n    from ..cli import main\n    import {NAME}.proxy.app\n")

    assert len(upward(module)) == 2


@pytest.mark.parametrize(
    "library",
    [
        *("dbus_next", "dbus_fast", "pystemd", "jinja2", "jwt"),
        *("jsonschema_rs", "re2", "redis", "yaml"),
    ],
)
def test_an_outside_system_has_at_most_one_importing_module(library):
    importers = [
        shown(module)
        for module in modules()
        if any(name.split(".")[0] == library for name in imported(module))
    ]

    assert len(importers) <= 1, importers


def test_the_model_knows_neither_input_nor_output():
    forbidden = {"asyncio", "socket", "subprocess", "aiohttp", "os", "threading"}
    found = [
        f"{shown(module)} imports {name}"
        for module in modules()
        if module.parent.name == "model"
        for name in imported(module)
        if name.split(".")[0] in forbidden
    ]

    assert found == []
