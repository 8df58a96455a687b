import shutil
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def public_path():
    """A directory that every uid can pass, unlike tmp_path: as root, servers run as others."""
    root = Path(tempfile.mkdtemp(prefix="mcp-bridge-store-"))
    root.chmod(0o755)
    yield root
    shutil.rmtree(root)
