"""Debian's Chromium, in a layer over the base of a suite."""

from lab.containers import Container
from lab.layers import MAKE_TIMEOUT, layer
from lab.places import Lab

PACKAGES = ("chromium",)
PROGRAM = "/usr/bin/chromium"
_APT = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet", "--yes")


def chromium_layer(lab: Lab, suite: str) -> str:
    """Return the layer's place; installing it takes a minute, once.

    Raises:
        LabError: it cannot be installed.
    """
    return layer(lab, suite, "chromium", PACKAGES, _install)


def _install(container: Container) -> None:
    container.check(*_APT, "update", timeout=MAKE_TIMEOUT)
    words = ("install", "--no-install-recommends", *PACKAGES)
    container.check(*_APT, *words, timeout=MAKE_TIMEOUT)
