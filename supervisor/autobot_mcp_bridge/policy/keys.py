"""The API keys that count now, and when each was used last."""

import time
from collections.abc import Callable, Iterable, Mapping

from autobot_mcp_bridge.config.keys import KeyRecord, Uses
from autobot_mcp_bridge.model.names import ServerId
from autobot_mcp_bridge.policy.principals import Key, Principal, principal_of

MAX_HOLDERS = 4096  # principals that are remembered


class KeyTable:
    """All keys of one host, found by the sha256 of their secret.

    Attributes:
        changes: how many uses there were, so that whoever writes them down knows what is new.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._by_digest: Mapping[str, Key] = {}
        self._broken: frozenset[str] = frozenset()  # tenants whose keys cannot be read now
        self._uses: dict[tuple[str, str], int] = {}
        self.changes = 0

    def put(self, records: Mapping[str, Iterable[KeyRecord]], broken: Iterable[str] = ()) -> None:
        """Put other keys in the place of all that there are, by tenant.

        Of a tenant whose file is broken no key counts; its uses are kept, for it may be mended.
        """
        keys = [_key(tenant, record) for tenant, found in records.items() for record in found]
        self._by_digest = {key.sha256: key for key in keys}
        self._broken = frozenset(broken)
        there = self._named()
        self._uses = {name: when for name, when in self._uses.items() if self._keeps(name, there)}

    def find(self, digest: str) -> Key | None:
        """The key whose secret has this digest, unless it has expired."""
        key = self._by_digest.get(digest)
        if key is None or (key.expires is not None and key.expires <= self._now()):
            return None
        return key

    def holds(self, key: Key) -> bool:
        """Tell whether this very secret still counts, and stands for what it stood for."""
        found = self.find(key.sha256)
        return found is key or (found is not None and found.says(key))

    def used(self, key: Key) -> None:
        """Somebody has come in with it; nothing is written here."""
        self._uses[key.tenant, key.id] = int(self._now())
        self.changes += 1

    def recall(self, uses: Uses) -> None:
        """What an earlier process knew of the keys that there are; what is newer stays."""
        there = self._named()
        for tenant, found in uses.items():
            for key_id, when in found.items():
                if self._keeps(name := (tenant, key_id), there):
                    self._uses[name] = max(when, self._uses.get(name, 0))

    def uses(self) -> Uses:
        """When each key was used last, by tenant and key."""
        found: Uses = {}
        for (tenant, key_id), when in sorted(self._uses.items()):
            found.setdefault(tenant, {})[key_id] = when
        return found

    def _named(self) -> set[tuple[str, str]]:
        return {(key.tenant, key.id) for key in self._by_digest.values()}

    def _keeps(self, name: tuple[str, str], there: set[tuple[str, str]]) -> bool:
        return name in there or name[0] in self._broken


class Holders:
    """The principals of keys that have called before: to make one costs 5 us of each call."""

    def __init__(self) -> None:
        self._made: dict[
            tuple[str, ServerId, str | None], tuple[Key, Principal | None, Principal]
        ] = {}

    def principal(
        self, key: Key, server: ServerId, project: str | None, beside: Principal | None
    ) -> Principal:
        """As `principal_of` makes it; anew when the key or what stands beside it is another."""
        name = (key.sha256, server, project)
        found = self._made.get(name)
        if found is not None and found[0] is key and found[1] is beside:
            return found[2]
        if len(self._made) >= MAX_HOLDERS:
            self._made.clear()
        made = principal_of(key, server.instance, project, beside)
        self._made[name] = key, beside, made
        return made


def _key(tenant: str, record: KeyRecord) -> Key:
    return Key(
        sha256=record.sha256,
        id=record.id,
        created=record.created,
        tenant=tenant,
        project=record.project,
        roles=frozenset(record.roles),
        agent_id=record.agent_id,
        agent_type=record.agent_type,
        expires=record.expires,
    )
