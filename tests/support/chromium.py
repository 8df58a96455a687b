"""Debian's Chromium, in a layer over the base of a suite."""

from lab.places import Lab
from support.debian import debian_layer

PROGRAM = "/usr/bin/chromium"


def chromium_layer(lab: Lab, suite: str) -> str:
    """Return the layer's place; installing it takes a minute, once.

    Raises:
        LabError: it cannot be installed.
    """
    return debian_layer(lab, suite, "chromium")
