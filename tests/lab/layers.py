"""Layers over a base: what a container on the host's network has installed, kept for others.

<cache>/layers/<suite>-<name>-<digest>     the container's own files, as it left them
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from lab import keeper, labs
from lab.commands import locked
from lab.containers import Container
from lab.places import Lab
from lab.problems import LabTimeoutError
from lab.recipe import base_name
from lab.spec import Bind
from support.waiting import until

# Packages come over a network: a slow mirror may need many times what is usual.
MAKE_TIMEOUT = 900.0
OFF_WITHIN = 30.0
# A container's own, or of the moment: another one must not find them.
_NOT_KEPT = ("etc/machine-id", "etc/hostname", "etc/hosts", "var/log", "var/cache", "tmp", "root")


def layer(
    lab: Lab,
    suite: str,
    name: str,
    key: object,
    make: Callable[[Container], None],
    binds: Iterable[Bind] = (),
    *,
    over: Iterable[str] = (),
    only: str | None = None,
) -> str:
    """Return the layer's place below the cache; it is made if it is not there.

    Args:
        lab: whose container makes it.
        suite: of the base.
        name: of the layer.
        key: what it depends on: another one means another layer.
        make: installs it in the container that is given.
        binds: what that container sees of the host.
        over: further layers that it is made over; whoever uses it need not have them.
        only: the one directory that is kept, without the first slash; None: all that was written.

    Raises:
        LabError: it cannot be made.
        LabTimeoutError: it took too long, here or in another process.
    """
    digest = hashlib.sha256(json.dumps([base_name(suite), key]).encode()).hexdigest()[:12]
    layers = lab.cache / "layers"
    wanted = layers / f"{suite}-{name}-{digest}"
    if not wanted.exists():
        with locked(layers / f"{suite}-{name}.lock", within=2 * MAKE_TIMEOUT):
            if not wanted.exists():
                name = f"make-{suite}"[:15]
                container = labs.up(lab, name, suite, host_network=True, binds=binds, layers=over)
                _make(container, wanted, make, only)
    return str(wanted.relative_to(lab.cache))


def _make(
    container: Container, wanted: Path, make: Callable[[Container], None], only: str | None
) -> None:
    try:
        make(container)
        # As a machine is turned off, so that every file is as its writer left it.
        container.run("systemctl", "poweroff")
        if not until(lambda: not container.is_up, within=OFF_WITHIN):
            raise LabTimeoutError(f"{container.name} does not power off")
        upper = container.place.folder / "upper"
        if only is not None:
            upper = _alone(upper / only, container.place.folder / "only", only)
        for name in _NOT_KEPT:
            path = upper / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        upper.rename(wanted)
    finally:
        container.down()
        keeper.forget(container.place)


def _alone(directory: Path, root: Path, path: str) -> Path:
    """Move the directory to the same path below another root, and return that root."""
    (root / path).parent.mkdir(parents=True)
    for made in (root, *(root / parent for parent in Path(path).parents)):
        made.chmod(0o755)
    directory.rename(root / path)
    return root
