"""The product in a container of the lab, with packages of npm and PyPI in its store.

A container of the lab has no internet, and its packet filters hold; one on the host's network is
the other way round (`lab/launch.py`). So apply installs the packages in one of those, once, and
the store is kept as a layer.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from lab import lent
from lab.containers import Container
from lab.layers import layer
from lab.places import Lab
from rules.tree import PACKAGE
from support.made import node_binds, uv_binds
from support.missing import Needs
from support.product import Product, checkout_binds, installed_product, lay_code, program_layer

INSTALLED_WITHIN = 600.0  # seconds; the registries' pace, not ours
STORE = "var/lib/mcp-bridge/packages"
# What decides how the store is filled.
INSTALLERS = (
    *("fetch/copying.py", "fetch/install.py", "fetch/take.py", "packages/installer.py"),
    *(f"packages/{name}.py" for name in ("node", "npm", "pip", "pypi", "uv")),
)


def packages_layer(lab: Lab, suite: str, need: Needs, commands: Sequence[Sequence[str]]) -> str:
    """Return the suite's layer with what these commands need, installed by apply."""
    program = program_layer(lab, suite)

    def make(container: Container) -> None:
        product = Product(container)
        lay_code(container)
        product.install()
        product.pass_to_installs(lent.registries())
        names = [f"server-{number}" for number in range(len(commands))]
        product.write_servers(
            *(
                {"name": name, "command": command}
                for name, command in zip(names, commands, strict=True)
            )
        )
        asyncio.run(product.applied(*names, within=INSTALLED_WITHIN))

    binds = [*checkout_binds(), *node_binds(need), *uv_binds(need)]
    installers = [(PACKAGE / "units" / file).read_text(encoding="utf-8") for file in INSTALLERS]
    key = [program, [*map(list, commands)], installers]
    return layer(lab, suite, "packages", key, make, binds, over=[program], only=STORE)


@contextmanager
def stocked_product(
    lab: Lab,
    suite: str,
    name: str,
    need: Needs,
    commands: Sequence[Sequence[str]],
    layers: Iterable[str] = (),
) -> Iterator[Product]:
    """A product that can serve these commands without an install, over layers besides."""
    packages = packages_layer(lab, suite, need, commands)
    product = installed_product(lab, suite, name, layers=[packages, *layers])
    try:
        yield product
    finally:
        product.container.down()
