"""Packages of Debian, in layers over the base of a suite."""

from lab.containers import Container
from lab.layers import MAKE_TIMEOUT, layer
from lab.places import Lab

_APT = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet", "--yes")


def debian_layer(lab: Lab, suite: str, *packages: str) -> str:
    """Return the place of the layer that holds them, called as the first.

    Raises:
        LabError: they cannot be installed.
    """

    def install(container: Container) -> None:
        container.check(*_APT, "update", timeout=MAKE_TIMEOUT)
        words = ("install", "--no-install-recommends", *packages)
        container.check(*_APT, *words, timeout=MAKE_TIMEOUT)

    return layer(lab, suite, packages[0], packages, install)
