"""What a manifest asks for that is not to be had here, and what of it means nothing here."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from autobot_mcp_bridge.config.explain import problems_of
from autobot_mcp_bridge.config.problem import Loc, Problem, json_path
from autobot_mcp_bridge.policy.filters.arguments import ArgumentFilters
from autobot_mcp_bridge.policy.filters.patterns import PatternError, compiled
from autobot_mcp_bridge.policy.globs import can_match
from autobot_mcp_bridge.policy.manifest.model import (
    Credentials,
    Manifest,
    Module,
    ProxyConfig,
)
from autobot_mcp_bridge.policy.schema.validate import Schema
from autobot_mcp_bridge.policy.schema.weigh import SchemaError
from autobot_mcp_bridge.policy.scopes.find import StrategyError, strategy_of

PROXY = "mcp_proxy"
# Modules that scoped-mcp brings along; here each is an MCP server of its own, if it is wanted.
ELSEWHERE = frozenset(
    {"discord_webhook", "filesystem", "grafana", "http_proxy", "influxdb", "matrix", "ntfy"}
    | {"slack_webhook", "smtp", "sqlite"}
)
_LATER = "not built yet; leave it out"
# What says how a module's server is reached, which its definition does here.
_OF_THE_SERVER = ("url", "command", "args", "env", "headers", "discovery_timeout_seconds")
_OF_THE_START = ("optional", "dependency_wait_timeout_seconds", "dependency_wait_interval_seconds")

Findings = Iterator[tuple[Loc, str]]


@dataclass(frozen=True, slots=True)
class Checked:
    """A manifest whose every key is honoured, or said to mean nothing in `notes`."""

    manifest: Manifest
    proxies: dict[str, tuple[Module, ProxyConfig]]
    notes: tuple[str, ...] = field(default=())


def check(value: Any, file: str, *, shared: bool) -> tuple[Checked | None, list[Problem]]:
    """The manifest, or everything that is wrong with it, by path and without values (SM-F9).

    `shared` says whether this host counts together with others (host.toml, rates.redis).
    """
    if not isinstance(value, dict):
        return None, [Problem(file, "$", "", "allowed is a mapping with agent_type and modules")]
    problems: list[Problem] = []
    manifest = _validate(Manifest, value, (), file, problems)
    proxies = _proxies(value, file, problems)
    if manifest is not None:
        problems += (
            Problem(file, json_path(loc), "", text) for loc, text in _wrong(manifest, shared=shared)
        )
    if manifest is None or problems:
        return None, list(dict.fromkeys(problems))
    notes = tuple(f"{file}: {json_path(loc)}: {text}" for loc, text in _notes(manifest, proxies))
    return Checked(manifest, proxies, notes), []


def _validate(
    model: type[Any], value: object, prefix: tuple[str | int, ...], file: str, found: list[Problem]
) -> Any:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        # Never the value: a manifest is where people put secrets by mistake.
        told = problems_of(error, model, lambda loc: (*prefix, *loc), file)
        found += (replace(problem, value="") for problem in told)
    return None


def _proxies(
    value: dict[str, Any], file: str, problems: list[Problem]
) -> dict[str, tuple[Module, ProxyConfig]]:
    """The modules that stand for servers; what is wrong with any joins the problems."""
    found: dict[str, tuple[Module, ProxyConfig]] = {}
    modules = value.get("modules")
    for key, raw in modules.items() if isinstance(modules, dict) else ():
        if not isinstance(raw, dict):
            continue  # told with the rest of the model
        kind = raw.get("type") or key
        if kind != PROXY:
            what = "scoped-mcp's own; run it as a server" if kind in ELSEWHERE else "known nowhere"
            text = f"a module of this type is {what}: here every module is of type {PROXY}"
            place = (*("modules", key), "type") if raw.get("type") else ("modules", key)
            problems.append(Problem(file, json_path(place), "", text))
            continue
        config = raw.get("config")
        place = ("modules", key, "config")
        known = _validate(ProxyConfig, config if config is not None else {}, place, file, problems)
        try:
            module = Module.model_validate(raw)
        except ValidationError:
            continue
        if known is not None:
            problems += (
                Problem(file, json_path((*place, *loc)), "", text) for loc, text in _scopes(known)
            )
            found[key] = module, known
    return found


def _scopes(config: ProxyConfig) -> Findings:
    if config.url is not None and config.command is not None:
        yield ("url",), "allowed is url or command, not both"
    for index, scope in enumerate(config.scopes):
        try:
            strategy_of(scope.strategy, scope.config)
        except StrategyError as error:
            yield ("scopes", index, error.key), str(error)


def _wrong(manifest: Manifest, *, shared: bool) -> Findings:
    """What cannot be had: named, never passed over."""
    if manifest.hitl:
        yield ("hitl",), f"approval of single calls is {_LATER}"
    if manifest.credentials.source == "vault":
        yield ("credentials", "source"), f"vault is {_LATER}"
    backend = manifest.state_backend
    if backend.type == "dragonfly" and not backend.url:
        yield ("state_backend", "url"), "missing; it must be given"
    elif backend.type == "dragonfly" and not shared:
        yield ("state_backend", "type"), "rates.redis of host.toml says where, and is absent"
    audit = manifest.audit
    if not audit.log_args:
        yield ("audit", "log_args"), f"by agent type it is {_LATER}"
    for key in ("agent_bus_emit", "agent_bus_comms_dir", "agent_bus_hitl_emit"):
        if getattr(audit, key):
            yield ("audit", key), "there is no agent bus here; leave it out"
    for kind in ("argument_filters", "response_filters"):
        for index, rule in enumerate(getattr(manifest, kind)):
            try:
                compiled(rule.pattern, case_insensitive=rule.case_insensitive)
            except PatternError as error:
                yield (kind, index, "pattern"), str(error)
    yield from _together(manifest)
    try:
        Schema({})
    except SchemaError as error:
        yield (), str(error)


def _together(manifest: Manifest) -> Findings:
    """Patterns that are right one by one are searched for in one."""
    try:
        for each in manifest.argument_filters:
            compiled(each.pattern, case_insensitive=each.case_insensitive)
    except PatternError:
        return  # told with its place
    try:
        ArgumentFilters(manifest.argument_filters)
    except PatternError as error:
        yield ("argument_filters",), f"together: {error}"


def _notes(manifest: Manifest, proxies: dict[str, tuple[Module, ProxyConfig]]) -> Findings:
    """What means nothing here, or can match nothing (SM-24)."""
    for key, (module, config) in proxies.items():
        for name in _given(config, _OF_THE_SERVER):
            text = f"how the server {key} is reached is said in servers.json, not here"
            yield ("modules", key, "config", name), text
        for name in _given(module, _OF_THE_START):
            yield ("modules", key, name), "servers start when they are called; it means nothing"
    if manifest.credentials != Credentials():
        yield ("credentials",), "servers name their credentials in servers.json; it means nothing"
    if manifest.state_backend.url is not None:
        yield ("state_backend", "url"), "rates.redis of host.toml counts; it means nothing"
    for glob in manifest.rate_limits.per_tool:
        if not any(can_match(glob, key) for key in proxies):
            text = "no tool of a module here can match; they are called MODULE_TOOL"
            yield ("rate_limits", "per_tool", glob), text


def _given(record: BaseModel, keys: tuple[str, ...]) -> list[str]:
    return [key for key in keys if key in record.model_fields_set]
