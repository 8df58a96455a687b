"""What pip installs the program from: the checkout that is running, or the wheel made anew.

Standard library only: a checkout runs it before anything is installed.
"""

import base64
import hashlib
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from autobot_mcp_bridge.units.packages.job import InstallError

NAME = "autobot-mcp-bridge"
PACKAGE = Path(__file__).resolve().parents[2]
# Not part of a wheel (pyproject.toml), and so not of what a checkout and a wheel have in common.
_NOT_PACKED = ("mcp-bridge@.service", "mcp-bridge@.socket")
_DIGEST = 12


def checkout() -> Path | None:
    """The checkout that this code runs in, if it does."""
    root = PACKAGE.parents[1]
    try:
        text = (root / "pyproject.toml").read_text(encoding="utf-8")
        return root if tomllib.loads(text)["project"]["name"] == NAME else None
    except (OSError, ValueError, LookupError):
        return None


def digest() -> str:
    """A short name for the code that is running, the same for a checkout and its wheel."""
    total = hashlib.sha256()
    for path, name in sorted(_files(PACKAGE, ""), key=lambda pair: pair[1]):
        total.update(f"{name}\0{path.stat().st_size}\0".encode())
        total.update(path.read_bytes())
    return total.hexdigest()[:_DIGEST]


def _files(directory: Path, prefix: str) -> Iterator[tuple[Path, str]]:
    for path in directory.iterdir():
        if path.name == "__pycache__" or (path.name in _NOT_PACKED and path.is_symlink()):
            continue
        if path.is_dir():  # through the link to the templates, too
            yield from _files(path, f"{prefix}{path.name}/")
        else:
            yield path, f"{prefix}{path.name}"


def wheel(folder: Path) -> Path:
    """What pip is to install: the checkout, or the running installation packed as a wheel again.

    Raises:
        InstallError: it is neither.
    """
    found = checkout()
    if found is not None:
        return found
    try:
        running = distribution(NAME)
    except PackageNotFoundError:
        raise InstallError(f"{PACKAGE} is neither a checkout nor an installed package") from None
    return repack(running, folder)


def repack(running: Distribution, folder: Path) -> Path:
    """Write the wheel (PEP 427) that an installed package came from.

    Raises:
        InstallError: the package has lost files.
    """
    info = f"{NAME.replace('-', '_')}-{running.version}.dist-info"
    target = folder / f"{NAME.replace('-', '_')}-{running.version}-py3-none-any.whl"
    rows = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in running.files or ():
            name = str(file)
            top = name.split("/", 1)[0]
            if top not in (PACKAGE.name, info) or "__pycache__" in name:
                continue  # scripts, which pip makes anew
            if top == info and file.name not in ("METADATA", "WHEEL", "entry_points.txt"):
                continue  # who installed it, from where
            try:
                data = Path(str(file.locate())).read_bytes()
            except OSError as error:
                raise InstallError(f"{file.locate()}: {error.strerror}") from None
            archive.writestr(name, data)
            hashed = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={hashed},{len(data)}\n")
        archive.writestr(f"{info}/RECORD", "".join((*rows, f"{info}/RECORD,,\n")))
    return target
