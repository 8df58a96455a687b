"""What a server leaves in its workspace is removed, whatever it is."""

import os
from pathlib import Path

import pytest

from support import proc
from support.waiting import eventually

from .conftest import Child, command, spec

SLOT = "child-1"
DEPTH = 1500  # beyond Python's recursion, and beyond PATH_MAX


def dig(path: Path, depth: int = DEPTH) -> None:
    """A tree of that depth; what makes it holds one descriptor at a time."""
    path.mkdir(parents=True, exist_ok=True)
    at = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir("deeper", dir_fd=at)
        below = os.open("deeper", os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


async def started(runtime, slot=SLOT):
    return Child(await runtime.start(spec(), command("echo"), slot))


async def ended(child):
    await child.stop()
    child.close()


async def test_a_deep_tree_is_removed_and_costs_no_descriptors(runtime, state):
    child = await started(runtime)
    workspace = state / ".workspaces" / SLOT
    dig(workspace)
    before, most = proc.descriptors(os.getpid()), 0

    def gone():
        nonlocal most
        most = max(most, proc.descriptors(os.getpid()))
        return not workspace.exists()

    await ended(child)
    await eventually(gone)
    assert most < before + 20


async def test_what_a_killed_proxy_has_left_holds_up_no_start(runtime, state):
    state.mkdir(mode=0o711)
    dig(state / ".workspaces" / "before-1")
    dig(state / ".workspaces-0badcafe" / "before-2")  # of one that was killed at this very work

    child = await started(runtime)

    await eventually(lambda: [p.name for p in (state / ".workspaces").iterdir()] == [SLOT])
    await eventually(lambda: not list(state.glob(".workspaces-*")))
    await ended(child)


@pytest.mark.parametrize("kind", ["file", "directory"])
async def test_what_a_link_in_a_workspace_points_to_stays(runtime, state, tmp_path, kind):
    child = await started(runtime)
    workspace = state / ".workspaces" / SLOT
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("x")
    (workspace / "link").symlink_to(kept / "file" if kind == "file" else kept)

    await ended(child)

    await eventually(lambda: not workspace.exists())
    assert (kept / "file").read_text() == "x"
