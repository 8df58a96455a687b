"""What apply has to change: the wanted servers against what is in force and on the disk.

A server that cannot be put to use holds up no other: what was in force of it before stays so, as
long as that may be started, and else it is not served.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from autobot_mcp_bridge.config.accepted import Accepted, AcceptedServer
from autobot_mcp_bridge.config.load import Loaded
from autobot_mcp_bridge.model.states import State
from autobot_mcp_bridge.units.drafts import Draft, Host
from autobot_mcp_bridge.units.packages.specs import PackageSpec

# In these states a server's unit is the one of its definition.
_HAS_UNIT = (None, State.CREDENTIAL_MISSING)


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole of a change.

    Attributes:
        accepted: what is in force once it is done.
        texts: instance to its drop-in, for each server that can be started.
        added, changed, removed: instances, sorted.
        missing: packages that have to be installed first.
        ports: socket unit of the proxy to its drop-in, "" for none.
    """

    accepted: Accepted
    texts: Mapping[str, str]
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    missing: tuple[PackageSpec, ...]
    ports: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_units(self) -> bool:
        """Whether units of servers change."""
        return bool(self.added or self.changed or self.removed)

    @property
    def left_out(self) -> tuple[AcceptedServer, ...]:
        """Servers whose definition in the files is not in force."""
        return tuple(server for server in self.accepted.servers if server.refused)


def plan(loaded: Loaded, host: Host, before: Accepted, there: Mapping[str, str]) -> Plan:
    """Compare.

    Args:
        loaded: the configuration, without problems.
        host: this one.
        before: what is in force.
        there: instance to the text of its drop-in on the disk.
    """
    drafts = _judged(host, (host.draft(spec) for spec in loaded.servers))
    refused = {name: draft for name, draft in drafts.items() if draft.refused}
    drafts |= _instead(host, refused, before, there)
    texts = {name: draft.text for name, draft in drafts.items() if draft.text is not None}
    servers = tuple(draft.server for draft in drafts.values())
    # What cannot be started only now keeps the units that it has: its package is being replaced.
    known = {server.spec.instance for server in servers if server.spec.enabled}
    packages = (draft.package for draft in drafts.values() if draft.package is not None)
    return Plan(
        accepted=Accepted(loaded.host, servers, loaded.digest),
        texts=texts,
        added=tuple(sorted(texts.keys() - there.keys())),
        changed=tuple(
            sorted(name for name in texts.keys() & there.keys() if texts[name] != there[name])
        ),
        removed=tuple(sorted(there.keys() - known)),
        missing=tuple(dict.fromkeys(packages)),
    )


def _judged(host: Host, drafts: Iterable[Draft]) -> dict[str, Draft]:
    """The drafts by instance, those refused as well whose units would be too exposed."""
    found = {draft.spec.instance: draft for draft in drafts}
    texts = (
        (draft.spec, draft.text)
        for draft in found.values()
        if draft.text is not None and not draft.refused
    )
    for name, clause in host.over(texts).items():
        found[name] = replace(found[name], refused=(clause,))
    return found


def _instead(
    host: Host, refused: Mapping[str, Draft], before: Accepted, there: Mapping[str, str]
) -> dict[str, Draft]:
    """What stands in the place of each server that cannot be put to use."""
    chosen = {
        name: Draft(AcceptedServer(draft.spec, State.REFUSED)) for name, draft in refused.items()
    }
    kept = {
        server.spec.instance: _kept(host, server)
        for server in before.servers
        if server.spec.instance in refused.keys() & there.keys()
        and server.spec.enabled
        and server.state in _HAS_UNIT
        and not host.distrusted(server.spec)
    }
    texts = [(draft.spec, draft.text or there[name]) for name, draft in kept.items()]
    over = host.over(texts)
    chosen |= {name: draft for name, draft in kept.items() if name not in over}
    return {name: _marked(draft, refused[name].refused) for name, draft in chosen.items()}


def _kept(host: Host, server: AcceptedServer) -> Draft:
    """What is in force, made anew if it can be; else its unit stays as it is."""
    draft = host.draft(server.spec)
    if draft.text is not None and not draft.refused:
        return draft
    return Draft(host.startable(server.spec, server.argv))


def _marked(draft: Draft, clauses: Iterable[str]) -> Draft:
    why = "; ".join(clauses)
    server = replace(draft.server, refused=why)
    if server.state is State.REFUSED:
        server = replace(server, why=why)
    return replace(draft, server=server, package=None)
