"""What an import would do, entry by entry: decided before anything is written."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from autobot_mcp_bridge.config import edit
from autobot_mcp_bridge.config.load import Entry, check_server, entries
from autobot_mcp_bridge.config.merge import merge
from autobot_mcp_bridge.config.problem import Problem
from autobot_mcp_bridge.config.sources import Sources
from autobot_mcp_bridge.connect.imported.draft import Draft, Secret
from autobot_mcp_bridge.connect.imported.naming import secret_name, server_name
from autobot_mcp_bridge.model.names import ServerId
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.secret_uses import refusal, uses_of

# What an import says of a server; whatever else its definition has is its administrator's.
_OWN = frozenset({"command", "env", "credentials", "url", "headers", "cwd"})
_OWN_PARTS = ("tools", "timeouts", "network", "profile")
# What --replace takes out of a definition; the rest is its administrator's.
_REPLACED = _OWN | {"tenant", "project", "name", "enabled", "profile"}
NO_STORE = (
    "it needs secrets ({labels}), which only units of systemd can be given, by root and after "
    "mcp-bridge install; nothing of it is written"
)


class What(StrEnum):
    """What becomes of an entry."""

    ADDED = "added"
    UNCHANGED = "unchanged"
    CHANGED = "changed"
    DISABLED = "disabled"
    SKIPPED = "skipped"


class Store(Protocol):
    """Where secrets go; units.secrets.Secrets is one."""

    def has(self, name: str) -> bool: ...
    def holds(self, name: str, value: bytes) -> bool: ...


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a person asks for beside the file.

    Attributes:
        replace: definitions and secrets that are there and differ.
        only: which entries, by the client's names; empty: all.
        network: the mode for each server that is a process; None: the definition says nothing.
        units: whether servers become units of systemd.
    """

    tenant: str
    project: str | None = None
    replace: bool = False
    only: frozenset[str] = frozenset()
    network: str | None = None
    units: bool = False


@dataclass(frozen=True, slots=True)
class Named:
    """A secret by the name that it has in the store.

    Attributes:
        stored: whether that is there already.
        put: whether its value is to be written.
    """

    name: str
    secret: Secret
    stored: bool
    put: bool = False


@dataclass(slots=True)
class Planned:
    """What becomes of one entry.

    Attributes:
        server: None where it has no name here.
        settings: the definition, without its name; empty where nothing is written.
        replaces: whether there is one of that name.
    """

    draft: Draft
    what: What
    why: str = ""
    server: ServerId | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    secrets: tuple[Named, ...] = ()
    replaces: bool = False
    asked_for: bool = True

    @property
    def to_do(self) -> list[str]:
        """What a person has to do before it works; never a secret."""
        said = list(self.draft.to_do) if self.what is not What.SKIPPED else []
        for each in self.secrets:
            if not each.stored and not each.put and self.what is not What.SKIPPED:
                hint = f"  ({each.secret.hint})" if each.secret.hint else ""
                said.append(f"mcp-bridge secret set {each.name}{hint}")
        return said


class Planner:
    """One import's decisions. Reads the disk (`cwd`) and the store, writes nothing."""

    def __init__(self, sources: Sources, store: Store | None, wishes: Wishes) -> None:
        self._sources = sources
        self._store = store
        self._wishes = wishes
        self._names: dict[str, Planned] = {}
        self._users: dict[str | None, set[str]] = {}
        for use in uses_of(self._specs()):
            self._users.setdefault(use.credential.name, set()).add(use.instance)
        self._labels: dict[str, tuple[str, str]] = {}

    def plan(self, drafts: Iterable[Draft]) -> list[Planned]:
        """Decide on each, in the order of the file."""
        return [self._plan(draft) for draft in drafts]

    def _specs(self) -> Iterator[ServerSpec]:
        for entry in entries(self._sources, []):
            if spec := self._checked(entry.file, merge(entry.defaults, entry.raw))[0]:
                yield spec

    def _plan(self, draft: Draft) -> Planned:
        wishes = self._wishes
        if wishes.only and draft.name not in wishes.only:
            return Planned(draft, What.SKIPPED, "it was not asked for", asked_for=False)
        if draft.skipped:
            return Planned(draft, What.SKIPPED, draft.skipped)
        twin = next((p for p in self._names.values() if _alike(p.draft, draft)), None)
        if twin:
            return Planned(draft, What.UNCHANGED, f"the same as {twin.draft.where}", twin.server)
        name = server_name(draft.name, self._names.keys())
        try:
            server = ServerId(wishes.tenant, wishes.project, name)
        except ValueError as error:
            return Planned(draft, What.SKIPPED, str(error))
        if name != draft.name:
            draft.notes.append(f"it is called {name} here")
        planned = Planned(draft, What.ADDED, server=server)
        self._names[name] = planned
        if draft.secrets and self._store is None:
            labels = ", ".join(each.label for each in draft.secrets)
            return self._skip(planned, NO_STORE.format(labels=labels))
        if self._store is not None:
            store = self._store
            planned.secrets = tuple(self._named(store, server, one) for one in draft.secrets)
        planned.settings = self._definition(planned)
        return self._decide(planned, server)

    def _named(self, store: Store, server: ServerId, secret: Secret) -> Named:
        owner = (server.instance, secret.label)

        def is_anothers(name: str) -> bool:
            users = self._users.get(name, {server.instance})
            return server.instance not in users or self._labels.get(name, owner) != owner

        name = secret_name(server, secret.label, is_anothers)
        self._labels[name] = owner
        stored = store.has(name)
        same = stored and (secret.value is None or store.holds(name, secret.value.encode()))
        return Named(name, secret, stored, put=secret.value is not None and not same)

    def _definition(self, planned: Planned) -> dict[str, Any]:
        draft = planned.draft
        found: dict[str, Any] = {}
        if draft.url is not None:
            found["url"] = draft.url
            headers: dict[str, Any] = dict(draft.headers)
            for each in planned.secrets:
                headers[each.secret.label] = header(each)
            if headers:
                found["headers"] = headers
        else:
            found["command"] = list(draft.command)
            if draft.env:
                found["env"] = dict(draft.env)
            if planned.secrets:
                found["credentials"] = {each.secret.label: each.name for each in planned.secrets}
            # npx and uvx themselves need the registry (units/packages/live.py).
            if self._wishes.network and "profile" not in draft.settings:
                found["network"] = {"mode": self._wishes.network}
        found |= draft.settings
        if draft.off or draft.to_do:
            found["enabled"] = False
        return found

    def _decide(self, planned: Planned, server: ServerId) -> Planned:
        draft, wishes = planned.draft, self._wishes
        spec, problems = self._checked(Path("-"), {**_identity(server), **planned.settings})
        if spec is None or problems:
            return self._skip(planned, "; ".join(map(_clause, problems)))
        for each in planned.secrets:
            value = (each.secret.value or "").encode()
            if each.put and (clause := refusal(value, uses_of([spec], each.name))):
                return self._skip(planned, f"{each.secret.label}: {clause}")
        others = [each.name for each in planned.secrets if each.put and each.stored]
        if others and not wishes.replace:
            return self._skip(
                planned, f"another value is stored as {', '.join(others)}; --replace replaces it"
            )
        existing = edit.find(self._sources, server)
        if existing is not None:
            return self._compare(planned, server, spec, existing)
        planned.what = What.DISABLED if planned.settings.get("enabled") is False else What.ADDED
        planned.why = draft.off
        return planned

    def _compare(
        self, planned: Planned, server: ServerId, spec: ServerSpec, existing: Entry
    ) -> Planned:
        planned.replaces = True
        old, _ = self._checked(existing.file, merge(existing.defaults, existing.raw))
        differing = ["its form"] if old is None else list(_differences(spec, old))
        if differing and not self._wishes.replace:
            return self._skip(
                planned,
                f"{server} stands in {existing.file} and differs in "
                f"{', '.join(differing)}; --replace replaces it",
            )
        if differing:
            kept = {k: v for k, v in existing.raw.items() if k not in _REPLACED}
            planned.settings = merge(kept, planned.settings)
            merged = merge(existing.defaults, {**planned.settings, **_identity(server)})
            if problems := self._checked(existing.file, merged)[1]:
                return self._skip(planned, "; ".join(map(_clause, problems)))
            planned.what, planned.why = What.CHANGED, f"it differed in {', '.join(differing)}"
            return planned
        planned.settings = {}
        put = [each.name for each in planned.secrets if each.put]
        planned.what = What.CHANGED if put else What.UNCHANGED
        planned.why = f"another value of {', '.join(put)}" if put else ""
        if old is not None and old.enabled:
            planned.draft.to_do.clear()  # a person has seen to it
        return planned

    def _checked(
        self, file: Path, merged: dict[str, Any]
    ) -> tuple[ServerSpec | None, list[Problem]]:
        problems: list[Problem] = []
        entry = Entry(file, 0, merged, {})
        return check_server(entry, problems, units=self._wishes.units), problems

    @staticmethod
    def _skip(planned: Planned, why: str) -> Planned:
        planned.what, planned.why, planned.settings = What.SKIPPED, why, {}
        return planned


def _identity(server: ServerId) -> dict[str, str]:
    found = {"tenant": server.tenant, "name": server.name}
    return found if server.project is None else {**found, "project": server.project}


def header(named: Named) -> dict[str, str]:
    """How a definition gives an upstream a secret."""
    found = {"credential": named.name}
    return {**found, "prefix": named.secret.prefix} if named.secret.prefix else found


def _alike(one: Draft, other: Draft) -> bool:
    """Whether two entries of a file are the same server, as Claude Code's projects have it."""
    keys = ("name", "command", "env", "url", "headers", "settings", "secrets", "off", "to_do")
    return all(getattr(one, key) == getattr(other, key) for key in keys)


def _clause(problem: Problem) -> str:
    place = problem.path.removeprefix("$.servers[0]").lstrip(".")
    return ": ".join(part for part in (place, problem.value, problem.allowed) if part)


def _differences(new: ServerSpec, old: ServerSpec) -> Iterator[str]:
    """The keys in which the definition that is there is not what the file says.

    What it has besides was added by a person, and `enabled` is switched by one.
    """
    wanted, found = (spec.model_dump(mode="json") for spec in (new, old))
    given = new.model_fields_set
    for key in (*sorted(_OWN), *_OWN_PARTS):
        if key in _OWN_PARTS and key not in given:
            continue
        if key == "cwd" and key not in given:
            continue
        if isinstance(wanted[key], dict):
            parts = getattr(new, key)
            keys = parts.model_fields_set if hasattr(parts, "model_fields_set") else wanted[key]
            if any(found[key].get(each) != wanted[key][each] for each in keys):
                yield key
        elif wanted[key] != found[key]:
            yield key
