"""Deleting what strangers have filled: servers' directories, and what installs have left."""

import errno
import os
import subprocess
from pathlib import Path


def remove_tree(path: Path) -> None:
    """Delete a directory with all that is in it, or nothing if it is not there. Blocks.

    By rm(1): a tree may be deeper than there are descriptors or frames for `shutil.rmtree`. It
    follows no link, not even one that comes meanwhile, and leaves no file system.

    Raises:
        OSError: something of it is still there.
    """
    # What it says of each file that it leaves could be as long as the tree is large.
    quiet = subprocess.DEVNULL
    words = ("rm", "-rf", "--one-file-system", "--", os.fspath(path))
    done = subprocess.run(words, stdin=quiet, stdout=quiet, stderr=quiet, check=False)
    if done.returncode != 0:
        raise OSError(errno.ENOTEMPTY, f"rm(1) ended with {done.returncode}", os.fspath(path))
