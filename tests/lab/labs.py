"""What makes containers, and finds what dead labs have left."""

from collections.abc import Iterable
from pathlib import Path

from lab import host, launch, lent
from lab.base import base
from lab.containers import Container
from lab.places import Lab
from lab.problems import LabError
from lab.spec import Bind, Spec


def up(
    lab: Lab,
    name: str,
    suite: str,
    *,
    host_network: bool = False,
    binds: Iterable[Bind] = (),
    layers: Iterable[str] = (),
) -> Container:
    """Return a container that has booted; one that was there before keeps its files.

    Raises:
        LabError: it cannot be made or does not boot.
    """
    container = Container(lab.place(name))
    if container.is_up:
        return container
    host.make_room()
    folder = base(lab.cache, suite)
    binds, variables = list(binds), {}
    if host_network:
        binds += [Bind(str(here), str(inside)) for here, inside in lent.paths()]
        variables = lent.variables()
    layers = tuple(layers)
    spec = Spec(suite, folder.name, lab.owner, host_network, tuple(binds), layers, variables)
    launch.lay_files(container.place, spec)
    spec.write(container.place)
    try:
        container.start()
    except LabError:
        container.down()
        raise
    return container


def sweep(cache: Path) -> None:
    """Remove what labs have left whose owner and keepers are dead, all of them."""
    for path in cache.glob("labs/*/*/spec.json"):
        place = Lab(cache, path.parents[1].name).place(path.parent.name)
        owner = Spec.read(place).owner
        if owner is not None and not Path(f"/proc/{owner}").exists():
            # A living keeper is about to do the same.
            Container(place).down()
