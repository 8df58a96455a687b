import pytest

from support import installed as units


@pytest.fixture(scope="module")
def installed(container):
    """The suite's container with the project's unit files in it."""
    units.install(container)
    return container
