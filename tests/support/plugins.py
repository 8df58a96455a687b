"""Ansible's plugins of the roles as plain modules: what they decide needs no Ansible."""

import importlib.util
from types import ModuleType

from rules.tree import ROOT


def filter_plugin(role: str, name: str) -> ModuleType:
    path = ROOT / "roles" / role / "filter_plugins" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
