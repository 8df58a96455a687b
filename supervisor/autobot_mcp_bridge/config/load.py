"""The whole configuration, read once and checked whole: all mistakes at once, never an exception."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from autobot_mcp_bridge.config.explain import problems_of, unknown_key
from autobot_mcp_bridge.config.merge import holds, merge
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.problem import Loc, Problem, json_path, show_value
from autobot_mcp_bridge.config.relations import (
    Finding,
    host_relations,
    lacking,
    server_relations,
)
from autobot_mcp_bridge.config.sources import Overlay, Sources, read_sources
from autobot_mcp_bridge.config.unbuilt import unbuilt
from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.model.names import ServerId
from autobot_mcp_bridge.model.server import ServerSpec

VERSION = 1
# `$schema` is for editors; nothing here reads it.
FILE_KEYS = ["version", "defaults", "servers", "$schema"]
# What a default must not set: two servers of one name, or one token for all of them.
NO_DEFAULT = ("name", "tokens_sha256")
Model = TypeVar("Model", bound=BaseModel)
_STAND_IN = {"name": "a", "command": ["a"]}


@dataclass(frozen=True, slots=True)
class Refused:
    """Why what the files say of one server is not in force, though the rest is.

    Attributes:
        why: what is wrong, with its place.
        kept: the definition that was in force before still is; else the server is not served.
    """

    why: str
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration as it stands on the disk.

    Attributes:
        servers: every server that is right, the disabled ones too, in the order of the files.
        host: the host's settings; its defaults where host.toml is wrong.
        problems: what is wrong; only without any may the rest be put to use.
        found: whether any file holds servers, even none.
        lacking: instance to what this host does not have for it; the trouble of that server alone.
        refused: instance to what became of that, once somebody has decided it.
        digest: of the files' names and content; equal digests mean equal configurations.
    """

    servers: tuple[ServerSpec, ...]
    host: HostSettings
    problems: tuple[Problem, ...]
    digest: str
    found: bool = True
    lacking: Mapping[str, tuple[Problem, ...]] = field(default_factory=dict)
    refused: Mapping[str, Refused] = field(default_factory=dict)

    @property
    def enabled(self) -> tuple[ServerSpec, ...]:
        return tuple(spec for spec in self.servers if spec.enabled)


@dataclass(frozen=True, slots=True)
class Entry:
    """One server as it stands in a file, before it is checked."""

    file: Path
    index: int
    raw: dict[str, Any]
    defaults: dict[str, Any]

    def place(self, loc: Loc) -> Loc:
        """From a place in the merged server to where the file says it."""
        if not holds(self.raw, loc) and holds(self.defaults, loc):
            return ("defaults", *loc)
        return ("servers", self.index, *loc)


def load(places: Places, *, overlay: Overlay | None = None, units: bool | None = None) -> Loaded:
    """Read and check host.toml, servers.json and servers.d/*.json.

    Blocks (disk only): call it in a thread. Bad content never raises; it is a problem.

    Args:
        places: where the files lie.
        overlay: content to be taken instead of some files' own.
        units: whether servers become units of systemd; None: where apply has been at work.
    """
    if units is None:
        units = places.accepted.exists()
    sources = read_sources(places, overlay)
    problems = list(sources.problems)
    host = _check_host(sources, places, problems)
    servers: list[ServerSpec] = []
    lacks: dict[str, tuple[Problem, ...]] = {}
    seen: dict[ServerId, str] = {}
    for entry in entries(sources, problems):
        spec = check_server(entry, problems, units=units)
        if spec is None:
            continue
        here = f"{entry.file} {json_path(('servers', entry.index))}"
        first = seen.setdefault(spec.id, here)
        if first != here:
            path = json_path(entry.place(("name",)))
            clause = f"the same server stands at {first}"
            problems.append(Problem(str(entry.file), path, json.dumps(spec.instance), clause))
            continue
        servers.append(spec)
        if lack := _lacking(spec, entry):
            lacks[spec.instance] = lack
    # A mistake in a file's defaults would otherwise be told once for each of its servers.
    told = tuple(dict.fromkeys(problems))
    found = bool(sources.documents)
    return Loaded(tuple(servers), host, told, sources.digest, found, lacks)


def check(raw: Mapping[str, Any], *, units: bool) -> list[Problem]:
    """Each mistake of one definition by itself, and what this host lacks for it.

    Blocks (disk). Each place is one in the definition.
    """
    problems: list[Problem] = []
    spec = _validate(ServerSpec, dict(raw), tuple, "", problems)
    if spec is not None:
        found = [*unbuilt(spec, units=units), *server_relations(spec), *lacking(spec)]
        _report(found, tuple, "", problems)
    return problems


def entries(sources: Sources, problems: list[Problem]) -> list[Entry]:
    """Every server of every file; what is wrong with a file's own form joins the problems."""
    found: list[Entry] = []
    for file, document in sources.documents.items():
        if not isinstance(document, dict):
            clause = "allowed is an object with version, defaults and servers"
            problems.append(Problem(str(file), "$", show_value(document, ()), clause))
            continue
        defaults = _check_form(file, document, problems)
        servers = document.get("servers", [])
        for index, raw in enumerate(servers if isinstance(servers, list) else ()):
            if isinstance(raw, dict):
                found.append(Entry(file, index, raw, defaults))
            else:
                path = json_path(("servers", index))
                problems.append(Problem(str(file), path, "", "allowed is an object"))
    return found


def _check_form(file: Path, document: dict[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """Check everything of a file but its servers; the defaults that count."""

    def report(loc: Loc, clause: str, value: object = None) -> None:
        shown = "" if value is None else show_value(value, loc)
        problems.append(Problem(str(file), json_path(loc), shown, clause))

    for key in document:
        if key not in FILE_KEYS:
            report((key,), unknown_key(key, FILE_KEYS))
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        report(("version",), f"allowed is {VERSION}", version)
    if not isinstance(document.get("servers", []), list):
        report(("servers",), "allowed is a list", document["servers"])
    defaults = document.get("defaults", {})
    if not isinstance(defaults, dict):
        report(("defaults",), "allowed is an object", defaults)
        return {}
    for key in NO_DEFAULT:
        if key in defaults:
            report(("defaults", key), "allowed is to give it in each server")
    kept = {key: value for key, value in defaults.items() if key not in NO_DEFAULT}
    _validate(
        ServerSpec, merge(_STAND_IN, kept), lambda loc: ("defaults", *loc), str(file), problems
    )
    return kept


def check_server(entry: Entry, problems: list[Problem], *, units: bool) -> ServerSpec | None:
    """One server as it is checked; None, and what is wrong, where it has no right form."""
    file = str(entry.file)
    merged = merge(entry.defaults, entry.raw)
    spec = _validate(ServerSpec, merged, entry.place, file, problems)
    if spec is not None:
        found = [*unbuilt(spec, units=units), *server_relations(spec)]
        _report(found, entry.place, file, problems)
    return spec


def _lacking(spec: ServerSpec, entry: Entry) -> tuple[Problem, ...]:
    problems: list[Problem] = []
    if spec.enabled:
        _report(lacking(spec), entry.place, str(entry.file), problems)
    return tuple(problems)


def _check_host(sources: Sources, places: Places, problems: list[Problem]) -> HostSettings:
    file = str(places.host_toml)
    host = _validate(HostSettings, sources.host, lambda loc: loc, file, problems)
    if host is None:
        return HostSettings()
    _report(host_relations(host), lambda loc: loc, file, problems)
    return host


def _validate(
    model: type[Model],
    value: dict[str, Any],
    place: Callable[[Loc], Loc],
    file: str,
    problems: list[Problem],
) -> Model | None:
    try:
        # By way of JSON, so that strict means JSON's types: "yes" is no boolean, "5" no number.
        text = json.dumps(value, default=str)
    except RecursionError:
        problems.append(
            Problem(file, "$", "", "allowed are at most some hundred levels of nesting")
        )
        return None
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        problems += problems_of(error, model, place, file)
        return None


def _report(
    findings: Iterable[Finding], place: Callable[[Loc], Loc], file: str, problems: list[Problem]
) -> None:
    for loc, value, clause in findings:
        problems.append(Problem(file, json_path(place(loc)), show_value(value, loc), clause))
