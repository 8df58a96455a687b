"""The API keys that count now, and when each was used last."""

import time
from collections.abc import Callable, Iterable, Mapping

from autobot_mcp_bridge.config.keys import KeyRecord, Uses
from autobot_mcp_bridge.policy.principals import Key


class KeyTable:
    """All keys of one host, found by the sha256 of their secret."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._by_digest: Mapping[str, Key] = {}
        self._uses: dict[tuple[str, str], int] = {}
        self._changed = False

    def put(self, records: Mapping[str, Iterable[KeyRecord]]) -> None:
        """Put other keys in the place of all that there are, by tenant."""
        keys = [_key(tenant, record) for tenant, found in records.items() for record in found]
        self._by_digest = {key.sha256: key for key in keys}
        there = {(key.tenant, key.id) for key in keys}
        self._uses = {name: when for name, when in self._uses.items() if name in there}

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
        self._changed = True

    def recall(self, uses: Uses) -> None:
        """What an earlier process knew of the keys that there are; what is newer stays."""
        there = {(key.tenant, key.id) for key in self._by_digest.values()}
        for tenant, found in uses.items():
            for key_id, when in found.items():
                if (name := (tenant, key_id)) in there:
                    self._uses[name] = max(when, self._uses.get(name, 0))

    def fresh_uses(self) -> Uses | None:
        """All uses, by tenant and key; None if there was none since they were asked for last."""
        if not self._changed:
            return None
        self._changed = False
        found: Uses = {}
        for (tenant, key_id), when in sorted(self._uses.items()):
            found.setdefault(tenant, {})[key_id] = when
        return found


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
