from collections.abc import Iterator

import pytest

from autobot_mcp_bridge.supervision import bus_library
from lab import recipe
from lab.places import Lab
from support import installed as units
from support.missing import Needs
from support.product import Product, installed_product


@pytest.fixture(scope="module")
def installed(container):
    """The suite's container with the project's unit files in it."""
    units.install(container)
    return container


@pytest.fixture(scope="session", params=recipe.SUITES)
def product(request: pytest.FixtureRequest, lab: Lab) -> Iterator[Product]:
    """The whole product installed in a container of its own: see support/product.py."""
    made = installed_product(lab, request.param, f"prod-{request.param}")
    yield made
    made.container.down()


@pytest.fixture(params=bus_library.LIBRARIES)
def library(request: pytest.FixtureRequest, need: Needs) -> str:
    """Each D-Bus library in turn."""
    need(request.param)
    name: str = request.param
    return name
