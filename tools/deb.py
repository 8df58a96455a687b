"""Make the Debian packages: one for each suite, since a venv belongs to one Python.

    python tools/deb.py [--suite bookworm]... [--out dist]

Each is built by `tools/deb_here.py` in a container of the lab (tests/lab), which needs root.
"""

import argparse
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "tests"))

from deb_here import EPOCH, ROOT, TIMEOUT, BuildError, copy_tree, last_commit

from lab import host, labs, recipe
from lab.containers import Container
from lab.layers import layer
from lab.places import Lab
from lab.problems import LabError

# What Build-Depends: of debian/control names, and what calls it.
BUILD_PACKAGES = ("debhelper", "dpkg-dev", "python3-venv")
INSIDE = "/build"  # where a container builds


def main() -> int:
    parser = argparse.ArgumentParser(description="make the Debian packages, one for each suite")
    parser.add_argument("--suite", action="append", choices=recipe.SUITES, help="only this one")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the packages go")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    try:
        for path in build(asked.suite or list(recipe.SUITES), asked.out):
            print(path, flush=True)
    except (BuildError, LabError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def build(suites: list[str], out: Path) -> Iterator[Path]:
    """Build in a container of each suite; where the packages are.

    Raises:
        BuildError: there can be no lab here.
        LabError: a build failed; the message ends with its last lines.
    """
    lab = Lab.of_process()
    why = host.unavailable(lab.cache)
    if why is not None:
        raise BuildError(f"there can be no lab here: {why}; on a Debian run tools/deb_here.py")
    for suite in suites:
        tools = layer(lab, suite, "debhelper", BUILD_PACKAGES, _prepare)
        container = labs.up(lab, f"deb-{suite}", suite, host_network=True, layers=[tools])
        try:
            yield _build(container, out)
        finally:
            container.down()


def _prepare(container: Container) -> None:
    install = f"apt-get install --yes --no-install-recommends {shlex.join(BUILD_PACKAGES)}"
    container.check("sh", "-c", f"apt-get update && {install}", timeout=TIMEOUT)


def _build(container: Container, out: Path) -> Path:
    with tempfile.TemporaryDirectory() as name:
        copy_tree(Path(name, "tree"))
        container.copy(Path(name, "tree"), f"{INSIDE}/tree")
    epoch = f"{EPOCH}={os.environ.get(EPOCH) or last_commit()}"
    words = ("python3", f"{INSIDE}/tree/tools/deb_here.py", "--out", f"{INSIDE}/out")
    made = container.check("env", epoch, *words, timeout=TIMEOUT).splitlines()[-1]
    state = container.state()
    if state is None:
        raise BuildError(f"{container.name} has ended")
    return Path(shutil.copy(f"/proc/{state.leader}/root{made}", out))


if __name__ == "__main__":
    sys.exit(main())
