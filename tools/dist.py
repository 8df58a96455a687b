"""Make dist/: the wheel, and requirements.txt that pins all it needs by version and hash.

    python tools/dist.py [DIR]

For any Python that the project runs on: a host installs both with `pip --require-hashes`.
"""

import os
import subprocess
import sys
from pathlib import Path

from venv_tools import PROJECT, ROOT

from autobot_mcp_bridge.units.host.program import OLDEST, OPTIONAL
from autobot_mcp_bridge.units.packages.pip_settings import uv_environment

BIN = Path(sys.executable).parent
TIMEOUT = 600.0  # seconds for one program; a slow registry has to be asked about twenty packages
# A directory of wheels knows the hashes of its own only: the lock is made from the one index.
_NOT_ASKED = ("UV_INDEX", "UV_FIND_LINKS", "UV_INDEX_STRATEGY")
COMPILE = ("pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-header")


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    requirements = folder / "requirements.txt"
    # uv would take versions and hashes over from the one that is there.
    for old in (requirements, *folder.glob("*.whl")):
        old.unlink(missing_ok=True)
    python = ".".join(map(str, OLDEST))
    words = [
        *COMPILE,
        "--no-annotate",
        "--python-version",
        python,
        "-o",
        requirements,
        PROJECT,
        "-",
    ]
    try:
        _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder])
        _run([BIN / "uv", *words], "\n".join(OPTIONAL))
    except subprocess.SubprocessError as error:
        print(f"{error}\n{getattr(error, 'stderr', '') or ''}", file=sys.stderr)
        return 1
    print(*sorted(folder.glob("*.whl")), requirements, sep="\n")
    return 0


def _run(words: list[str | Path], text: str = "") -> None:
    env = uv_environment(os.environ)
    subprocess.run(
        words,
        cwd=ROOT,
        env={name: text for name, text in env.items() if name not in _NOT_ASKED},
        input=text,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=TIMEOUT,
        check=True,
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"))
