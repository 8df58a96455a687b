"""Which versions the registries have: asked with npm, uv or pip, and nothing is installed."""

import math
import re
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.units.packages.installer import newest_versions
from autobot_mcp_bridge.units.packages.job import InstallError, Job, without_log
from autobot_mcp_bridge.units.packages.node import WHEEL, has_host_node
from autobot_mcp_bridge.units.packages.specs import Kind, PackageSpec
from autobot_mcp_bridge.units.packages.store import Store

# One package: two questions to one registry, behind a slow line.
ASK_SECONDS = 60.0
PARALLEL = 4  # registries limit a host
_MOST_WORDS = 2000  # characters of a program's last words
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+!_-]{0,127}")


@dataclass(frozen=True, slots=True)
class Newest:
    """What a registry says of a package.

    Attributes:
        allowed: the newest version that the spec allows; None where it is not known.
        newest: the newest of all, likewise.
        why: why they are not known; empty where they are.
    """

    allowed: str | None = None
    newest: str | None = None
    why: str = ""

    @classmethod
    def read(cls, found: object) -> "Newest":
        """From what another process says, which is not believed further than it has the form."""
        match found:
            case {"why": "", "allowed": str(allowed), "newest": str(newest)}:
                if _VERSION.fullmatch(allowed) and _VERSION.fullmatch(newest):
                    return cls(allowed, newest)
            case {"why": str(why)} if why:
                return cls(why=why[:_MOST_WORDS])
        return cls(why="an answer that is not understood")


def ask(
    specs: Iterable[PackageSpec], known: Store, environ: Mapping[str, str]
) -> dict[PackageSpec, Newest]:
    """Ask for all of them, some at a time; what cannot be told says why. Blocks.

    Args:
        specs: each is asked for once.
        known: a store that may hold the node that npm needs; nothing is written there.
        environ: the variables for the programs that ask.
    """
    with tempfile.TemporaryDirectory(prefix="mcp-bridge-") as name:
        scratch = Store(Path(name))
        scratch.prepare()
        version = str(WHEEL.version)
        if known.find(WHEEL) is not None:
            scratch.directory(WHEEL, version).symlink_to(known.directory(WHEEL, version))

        def one(pair: tuple[int, PackageSpec]) -> Newest:
            number, spec = pair
            job = Job(scratch.log_file(str(number)), environ, ASK_SECONDS)
            try:
                if spec.kind is Kind.NPM and not (
                    scratch.find(WHEEL) is not None or has_host_node(scratch, job)
                ):
                    return Newest(
                        why="npm is not on this host, and no server of its has been installed"
                    )
                return Newest(*newest_versions(spec, scratch, job))
            except InstallError as error:
                return Newest(why=without_log(str(error)))

        wanted = list(dict.fromkeys(specs))
        with ThreadPoolExecutor(PARALLEL, thread_name_prefix="ask") as pool:
            return dict(zip(wanted, pool.map(one, enumerate(wanted)), strict=True))


def seconds_for(count: int) -> float:
    """How long `ask` may take for so many."""
    return ASK_SECONDS * (math.ceil(count / PARALLEL) + 1)
