"""Taking a behaviour away: a module of the package is imported with a part of its text replaced."""

import importlib.abc
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

PACKAGE = "autobot_mcp_bridge"
SOURCES = Path(__file__).resolve().parents[2] / "supervisor" / PACKAGE
STALE = "the removal is stale"  # in the error of one whose text is no longer there


@dataclass(frozen=True, slots=True)
class Removal:
    """A change that takes away what a requirement promises.

    Attributes:
        module: the file, below the package.
        old: a text that is in it once.
        new: what stands there instead.
        test: the test that must fail then, as pytest names it below tests/.
    """

    module: str
    old: str
    new: str
    test: str

    @property
    def name(self) -> str:
        return f"{PACKAGE}.{self.module.removesuffix('.py').replace('/', '.')}"

    def changed(self, source: str) -> str:
        """The module's text without the behaviour.

        Raises:
            ImportError: the text to replace is not there, or not once.
        """
        if source.count(self.old) != 1:
            raise ImportError(f"{STALE}: {self.module} has {source.count(self.old)} x {self.old!r}")
        return source.replace(self.old, self.new)


class _Loader(SourceFileLoader):
    def __init__(self, removal: Removal, path: str) -> None:
        super().__init__(removal.name, path)
        self._removal = removal

    def get_code(self, fullname: str) -> CodeType:
        """Compiled anew: what is cached is of the whole text."""
        source = self._removal.changed(self.get_source(fullname) or "")
        return self.source_to_code(source.encode(), self.path)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, removal: Removal) -> None:
        self._removal = removal

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._removal.name:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(self._removal, spec.origin)
        return spec


def install(removal: Removal) -> None:
    """Import the module without the behaviour, from now on in this process."""
    sys.meta_path.insert(0, _Finder(removal))
