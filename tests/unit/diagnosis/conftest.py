import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A directory that every uid can reach, unlike tmp_path."""
    root = Path(tempfile.mkdtemp(prefix="mcp-bridge-doctor-"))
    root.chmod(0o711)
    yield root
    shutil.rmtree(root)
