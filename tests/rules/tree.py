"""The repository's files, as git would track them."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "supervisor" / "autobot_mcp_bridge"


@cache
def tracked() -> tuple[Path, ...]:
    """Every file that is tracked or would be: what .gitignore leaves out is not the project's."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    ).stdout
    paths = (ROOT / name for name in listed.split("\0") if name)
    return tuple(sorted(path for path in paths if path.is_file() and not path.is_symlink()))


def modules() -> list[Path]:
    return [path for path in tracked() if path.suffix == ".py" and path.is_relative_to(PACKAGE)]


def imported(module: Path) -> Iterator[str]:
    """Yield the full dotted name of everything that a module imports, wherever it does."""
    package = module.relative_to(PACKAGE.parent).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            name = ".".join((*base, *filter(None, (node.module,))))
            yield from (f"{name}.{alias.name}" for alias in node.names)


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))
