"""What is different for installs as root: nothing that a stranger wrote is run."""

import os

# Building from source runs the package's own build script. Understood by pip and uv alike.
WHEELS_ONLY = "--only-binary=:all:"


def is_root() -> bool:
    return os.geteuid() == 0
