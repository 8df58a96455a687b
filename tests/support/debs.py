"""The project's Debian packages, built by `tools/deb.py` as `make deb` does."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from rules.tree import ROOT, tracked

BUILD_WITHIN = 1800.0
DATE = "1790000000"  # any moment, the same for all builds: SOURCE_DATE_EPOCH
# What goes into a package, and what makes it.
_INTO = ("supervisor", "templates", "debian", "tools", "pyproject.toml", "README.md")


class Sources:
    """A copy of the checkout whose code says another version."""

    def __init__(self, folder: Path, version: str) -> None:
        self.root = folder / f"tree-{version}"
        self.version = version
        for path in tracked():
            target = self.root / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
        for link in (ROOT / "supervisor").rglob("_templates"):
            (self.root / link.relative_to(ROOT)).symlink_to(link.readlink())
        for link in (ROOT / "templates").glob("mcp-bridge@.*"):
            (self.root / link.relative_to(ROOT)).symlink_to(link.readlink())
        module = self.root / "supervisor/autobot_mcp_bridge/__init__.py"
        text = module.read_text(encoding="utf-8")
        head, _, _ = text.partition("__version__")
        module.write_text(f'{head}__version__ = "{version}"\n', encoding="utf-8")

    def build(self, suite: str, out: Path) -> Path:
        """Build the suite's package; where it is."""
        done = subprocess.run(
            [sys.executable, self.root / "tools/deb.py", "--suite", suite, "--out", out],
            env={**os.environ, "SOURCE_DATE_EPOCH": DATE},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BUILD_WITHIN,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return Path(done.stdout.strip())

    def digest(self) -> str:
        total = hashlib.sha256()
        for name in _INTO:
            top = self.root / name
            files = sorted(top.rglob("*")) if top.is_dir() else [top]
            for path in files:
                if path.is_file():
                    total.update(f"{path.relative_to(self.root)}\0".encode() + path.read_bytes())
        return total.hexdigest()[:12]


def package(sources: Sources, suite: str, kept: Path) -> Path:
    """The suite's package of these sources, from an earlier run if there is one."""
    folder = kept / f"{suite}-{sources.digest()}"
    if not folder.exists():
        draft = folder.with_name(f"{folder.name}.{os.getpid()}")
        draft.mkdir(parents=True)
        sources.build(suite, draft)
        draft.rename(folder)
    (found,) = folder.glob("*.deb")
    return found
