"""A Python with the product that every uid can execute: servers with url are run by the proxy's own.

As root the proxy gives each server a uid of its own, and ours may lie below a 0700 directory.
"""

import atexit
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path

import autobot_mcp_bridge

SYSTEM = "/usr/bin/python3"
MAKE_WITHIN = 60  # seconds


@cache
def python() -> str:
    """Its path; made once a run, of the host's own Python, and removed at the end."""
    if os.geteuid() != 0:
        return sys.executable
    folder = Path(tempfile.mkdtemp(prefix="mcp-bridge-python-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    words = [SYSTEM, "-m", "venv", "--without-pip", str(folder / "venv")]
    subprocess.run(words, check=True, timeout=MAKE_WITHIN, stdin=subprocess.DEVNULL)
    version = "{}.{}".format(*sys.version_info)
    packages = folder / "venv" / "lib" / f"python{version}" / "site-packages"
    assert packages.is_dir(), f"as root these tests need {SYSTEM} to be Python {version}"
    product = Path(autobot_mcp_bridge.__file__).parent.parent
    paths = (product, sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    (packages / "product.pth").write_text("".join(f"{path}\n" for path in paths))
    return str(folder / "venv" / "bin" / "python")
