"""Names: how a server is identified in configuration, URLs, units, directories and logs.

Every mapping here is one-to-one: two different servers never share an instance name, a path or
a user (BUGS S5). Names are compared whole, never by prefix (BUGS C8).
"""

import base64
import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

PART = r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?"
PART_IN_WORDS = "1 to 32 of a-z, 0-9 and -, not with - at an end"
DEFAULT_TENANT = "default"
# The socket path /run/mcp-bridge/<instance>.sock must fit the 107 bytes of sun_path (unix(7)).
MAX_INSTANCE_LENGTH = 80
# systemctl reads a trailing one of these as a unit type (systemd.unit(5)).
UNIT_SUFFIXES = frozenset(
    {
        "service",
        "socket",
        "device",
        "mount",
        "automount",
        "swap",
        "target",
        "path",
        "timer",
        "slice",
        "scope",
    }
)
_LONGEST_PATH = len("/t//p//s//mcp") + 3 * 32
_PART = re.compile(PART)
_ENDPOINT = re.compile(rf"/t/(?P<tenant>{PART})(?:/p/(?P<project>{PART}))?/s/(?P<name>{PART})/mcp")


def is_part(text: str) -> bool:
    """Tell whether the text may be a tenant, a project or a server name."""
    return _PART.fullmatch(text) is not None


@dataclass(frozen=True, slots=True, order=True)
class ServerId:
    """Which server: tenant, project (None: shared by the tenant) and name.

    Raises:
        ValueError: a part is not allowed; the message says which and why.
    """

    tenant: str
    project: str | None
    name: str

    def __post_init__(self) -> None:
        for label, part in (
            ("tenant", self.tenant),
            ("project", self.project),
            ("name", self.name),
        ):
            if part is not None and not is_part(part):
                raise ValueError(f"{label} {part!r}: allowed is {PART}")
        if self.name in UNIT_SUFFIXES:
            raise ValueError(f"name {self.name!r}: the name of a systemd unit type is not allowed")
        if len(self.instance) > MAX_INSTANCE_LENGTH:
            raise ValueError(f"{self.instance!r}: at most {MAX_INSTANCE_LENGTH} characters")

    @property
    def instance(self) -> str:
        """The unit's instance name: `files`, `acme.files` or `acme.web.files`.

        The tenant `default` without a project is left out; with a project it stays, so that
        `default.web.files` and tenant `web` without a project cannot meet.
        """
        if self.project is not None:
            return f"{self.tenant}.{self.project}.{self.name}"
        if self.tenant != DEFAULT_TENANT:
            return f"{self.tenant}.{self.name}"
        return self.name

    @property
    def path(self) -> str:
        """The endpoint's URL path (NV-09)."""
        project = f"/p/{self.project}" if self.project is not None else ""
        return f"/t/{self.tenant}{project}/s/{self.name}/mcp"

    @property
    def directory(self) -> PurePosixPath:
        """Where the server's files lie below the state root (NV-04); `-` stands for no project."""
        return PurePosixPath(self.tenant, self.project or "-", self.name)

    @property
    def unit_user(self) -> str:
        """The user of the server's unit: `mb-` and 16 base32 characters of a sha256."""
        digest = hashlib.sha256(self.instance.encode()).digest()
        return "mb-" + base64.b32encode(digest)[:16].decode().lower()

    def __str__(self) -> str:
        return self.instance


def parse_instance(text: str) -> ServerId:
    """Read an instance name as people type it: `files`, `acme.files`, `acme.web.files`.

    Raises:
        ValueError: too many parts, or a part is not allowed.
    """
    match text.split("."):
        case [name]:
            return ServerId(DEFAULT_TENANT, None, name)
        case [tenant, name]:
            return ServerId(tenant, None, name)
        case [tenant, project, name]:
            return ServerId(tenant, project, name)
        case _:
            raise ValueError(f"{text!r}: allowed is NAME, TENANT.NAME or TENANT.PROJECT.NAME")


def parse_path(path: str) -> ServerId | None:
    """Which server a URL path would be the endpoint of, whether there is one or not."""
    return _parsed(path) if len(path) <= _LONGEST_PATH else None


@lru_cache(maxsize=4096)
def _parsed(path: str) -> ServerId | None:
    """The holders of API keys have it asked at each call: 5 us without the cache."""
    match = _ENDPOINT.fullmatch(path)
    if match is None:
        return None
    try:
        return ServerId(match["tenant"], match["project"], match["name"])
    except ValueError:
        return None
