"""Install the issuer of package.json under the cache directory, exactly as locked.

    python tests/issuer/setup.py          install what is missing, print the folder
    python tests/issuer/setup.py --lock   also renew package-lock.json

As with the real clients, the folder's name carries the lock's digest. It runs on the node of PATH.
"""

import hashlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from clients.setup import CannotInstallError, cache_dir, install_locked, run_npm  # noqa: E402 - after the path

FILES = ("package.json", "package-lock.json", "provider.mjs")


def home() -> Path:
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in FILES)).hexdigest()
    return cache_dir() / f"issuer-{digest[:12]}"


def install() -> Path:
    """Install the issuer unless it is there; return its folder (raises as `install_locked`)."""
    return install_locked(home(), [HERE / name for name in FILES], "ci")


def main() -> int:
    try:
        if "--lock" in sys.argv[1:]:
            run_npm(HERE, "install", "--package-lock-only", "--omit-lockfile-registry-resolved")
        print(install())
    except CannotInstallError as error:
        print(f"the issuer cannot be installed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
