"""The API keys of each tenant: made here, printed once, kept as sha256 only.

One file per tenant, so that a broken file shuts out one tenant's holders and nobody else's. A key
keeps its id when it is rotated: for as long as both secrets count, two records have it.
"""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from autobot_mcp_bridge.config.digests import (
    DEFAULT_OVERLAP,
    DigestRecord,
    DigestStore,
    digest_of,
    ending,
    random_id,
    random_secret,
)
from autobot_mcp_bridge.config.files import (
    RefusedFileError,
    private_directory,
    read_bounded,
    replace_file,
)
from autobot_mcp_bridge.model.agents import AGENT_ID, AGENT_TYPE, Role, is_agent_id, is_agent_type
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.names import PART_IN_WORDS, is_part

PREFIX = "mcpk_"
MAX_KEYS = 5000  # of one tenant; a file may have 4 MiB


@dataclass(frozen=True, slots=True)
class KeyRecord(DigestRecord):
    """A key of one tenant, which the file's name tells.

    Attributes:
        project: the one that it is bound to; None for all of the tenant.
        roles: as in model/agents.py, at least one.
        agent_id: who calls with it.
        agent_type: what kind of agent that is.
    """

    project: str | None
    roles: tuple[Role, ...]
    agent_id: str
    agent_type: str

    def __post_init__(self) -> None:
        """Refuse what no key can have.

        Raises:
            ValueError: a value is not allowed; the message says all that are.
        """
        wrong = []
        if self.project is not None and not (
            isinstance(self.project, str) and is_part(self.project)
        ):
            wrong.append(f"project: allowed is {PART_IN_WORDS}")
        if not self.roles:
            wrong.append("roles: allowed is at least one")
        if not (isinstance(self.agent_id, str) and is_agent_id(self.agent_id)):
            wrong.append(f"agent id: allowed is {AGENT_ID}")
        if not (isinstance(self.agent_type, str) and is_agent_type(self.agent_type)):
            wrong.append(f"agent type: allowed is {AGENT_TYPE}")
        if wrong:
            raise ValueError("; ".join(wrong))


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """What a new key is to be."""

    agent_id: str
    agent_type: str
    project: str | None = None
    roles: tuple[Role, ...] = (Role.MEMBER,)
    label: str = ""
    expires: float | None = None


class KeyStore(DigestStore[KeyRecord]):
    """The files `<tenant>.json` below one directory. Every method blocks (disk, a file lock)."""

    words = ("key", "keys")
    owner = "tenant"

    def new(self, tenant: str, order: KeyOrder) -> tuple[str, KeyRecord]:
        """Make one more key. The key is returned here and never again.

        Raises:
            UsageError: a value is not allowed, or the tenant has MAX_KEYS.
            DataError: its file is broken.
        """
        key = random_secret(PREFIX)
        try:
            record = KeyRecord(
                id=random_id(),
                sha256=digest_of(key),
                created=time.time(),
                expires=order.expires,
                label=order.label,
                project=order.project,
                roles=tuple(dict.fromkeys(order.roles)),
                agent_id=order.agent_id.strip(),
                agent_type=order.agent_type.strip(),
            )
        except ValueError as error:
            raise UsageError(str(error)) from error

        def added(records: list[KeyRecord], _now: float) -> list[KeyRecord]:
            if any(old.id == record.id for old in records):  # one in 2**32 for each key
                raise UsageError(f"{tenant} has a key {record.id} already; try again")
            return [*records, record]

        self._edit(tenant, added)
        return key, record

    def rotate(
        self, tenant: str, key_id: str, overlap: float = DEFAULT_OVERLAP
    ) -> tuple[str, KeyRecord]:
        """Give a key a new secret; every older one counts for `overlap` seconds more at most.

        Raises:
            MissingError: the tenant has no such key that counts.
            DataError: its file is broken.
        """
        key = random_secret(PREFIX)
        made: list[KeyRecord] = []

        def older_end(records: list[KeyRecord], now: float) -> list[KeyRecord]:
            own = [record for record in records if record.id == key_id]
            if not own:
                raise self._missing(tenant, key_id)
            made.append(replace(own[-1], sha256=digest_of(key), created=now))
            ended = [ending(r, now + overlap) if r.id == key_id else r for r in records]
            return [*ended, *made]

        self._edit(tenant, older_end)
        return key, made[0]

    def _named(self, text: str) -> str:
        if not is_part(text):
            raise ValueError(f"tenant {text!r}: allowed is {PART_IN_WORDS}")
        return text

    def _parsed(self, item: dict[str, Any]) -> KeyRecord:
        roles = item.get("roles") if isinstance(item, dict) else None
        if not isinstance(roles, list):
            raise TypeError("roles")
        return KeyRecord(**{**item, "roles": tuple(map(Role, roles))})

    @property
    def _most(self) -> int:
        return MAX_KEYS


# ---- when each was used last: the proxy writes it, `key list` shows it ----

# Tenant to key id to seconds since the epoch.
Uses = dict[str, dict[str, int]]


def read_uses(path: Path) -> Uses:
    """What the proxy has written; nothing for a file that is no such one."""
    try:
        document = orjson.loads(read_bounded(path))
    except (FileNotFoundError, RefusedFileError, ValueError):
        return {}
    found: Uses = {}
    for tenant, uses in document.items() if isinstance(document, dict) else ():
        if isinstance(uses, dict):
            found[tenant] = {key: when for key, when in uses.items() if isinstance(when, int)}
    return found


def write_uses(path: Path, uses: Uses) -> None:
    """Replace the file; blocks. The directory is made where it is missing."""
    mode = private_directory(path.parent)
    replace_file(path, orjson.dumps(uses, option=orjson.OPT_SORT_KEYS), mode)
