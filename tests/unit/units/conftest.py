import os
import shlex
import shutil
import tempfile
from pathlib import Path

import pytest

from autobot_mcp_bridge.units.packages.job import Job
from autobot_mcp_bridge.units.packages.node import get_node
from autobot_mcp_bridge.units.packages.store import Store


def _public_directory():
    root = Path(tempfile.mkdtemp(prefix="mcp-bridge-store-"))
    root.chmod(0o755)
    yield root
    shutil.rmtree(root)


@pytest.fixture
def public_path():
    """A directory that every uid can pass, unlike tmp_path: as root, servers run as others."""
    yield from _public_directory()


@pytest.fixture(scope="session")
def node_path(need):
    """A directory of PATH with a node that every uid can run, and npm.

    Root's own node may lie below a home that is closed to others; then the wheel is installed.
    """
    need("npm")
    need("uv")
    for root in _public_directory():
        store = Store(root / "packages")
        store.prepare()
        node = get_node(store, Job(store.log_file("node"), os.environ))
        (root / "node").symlink_to(node.node)
        npm = root / "npm"
        npm.write_text(f'#!/bin/sh\nexec {shlex.join(node.npm)} "$@"\n', encoding="utf-8")
        npm.chmod(0o755)
        yield root


@pytest.fixture
def environ(registry, node_path, public_path):
    """What installers get that are to find the packages of the test's own `registry`."""
    return {
        "PATH": f"{node_path}:{os.environ['PATH']}",
        "HOME": str(public_path),
        "PIP_CONFIG_FILE": os.devnull,
        **registry.environ,
    }


@pytest.fixture
def store(public_path):
    found = Store(public_path / "packages")
    found.prepare()
    return found
