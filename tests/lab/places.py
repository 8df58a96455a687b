"""Where a lab keeps its files, and the names that it gives to what the kernel holds."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from lab.problems import LabError

# A container's name is its host name and part of the names of its cgroups and its namespace.
NAME = re.compile(r"[a-z][a-z0-9-]{0,14}")
PREFIX = "mcplab-"
CHECKOUT = Path(__file__).resolve().parents[2]


def default_cache() -> Path:
    own = os.environ.get("MCP_BRIDGE_LAB_CACHE")
    if own:
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mcp-bridge-lab"


@dataclass(frozen=True, slots=True)
class Lab:
    """A network with its containers.

    Labs of different ids share the bases and nothing else, so that several checkouts, and several
    runs in one, can work at the same time.
    """

    cache: Path
    id: str
    owner: int | None = None  # a process; what it leaves behind is removed when it ends

    @classmethod
    def of_checkout(cls, cache: Path | None = None) -> "Lab":
        """Return the lab of the command line: it stays until it is taken down."""
        return cls._called("", cache, None)

    @classmethod
    def of_process(cls, cache: Path | None = None) -> "Lab":
        """Return a lab that ends with this process, however that ends."""
        return cls._called(f"{os.getpid()}", cache, os.getpid())

    @classmethod
    def _called(cls, word: str, cache: Path | None, owner: int | None) -> "Lab":
        cache = cache or default_cache()
        digest = hashlib.sha256(f"{cache}\0{CHECKOUT}\0{word}".encode()).hexdigest()
        return cls(cache, digest[:6], owner)

    @property
    def folder(self) -> Path:
        return self.cache / "labs" / self.id

    @property
    def network(self) -> str:
        """The network namespace that holds the bridge."""
        return f"{PREFIX}{self.id}"

    def place(self, name: str) -> "Place":
        """Return where a container of this name is or would be.

        Raises:
            LabError: it is not a name.
        """
        if not NAME.fullmatch(name):
            raise LabError(f"{name!r} is no name for a container: {NAME.pattern}")
        return Place(self, name)

    def places(self) -> list["Place"]:
        found = sorted(path.parent.name for path in self.folder.glob("*/spec.json"))
        return [Place(self, name) for name in found]


@dataclass(frozen=True, slots=True)
class Place:
    """One container's files and names, whether it runs or not."""

    lab: Lab
    name: str

    @property
    def folder(self) -> Path:
        return self.lab.folder / self.name

    @property
    def kernel_name(self) -> str:
        """The name of its machine, its cgroups and its network namespace."""
        return f"{PREFIX}{self.lab.id}-{self.name}"

    @property
    def spec(self) -> Path:
        return self.folder / "spec.json"

    @property
    def state(self) -> Path:
        return self.folder / "state.json"

    @property
    def alive(self) -> Path:
        """The keeper holds a lock on it for as long as it lives."""
        return self.folder / "alive"

    @property
    def console(self) -> Path:
        return self.folder / "console.log"

    @property
    def address(self) -> Path:
        return self.folder / "address"
