"""The sandbox of a server at a glance: what its definition in force means on this host."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from autobot_mcp_bridge.cli.shown import show_bytes
from autobot_mcp_bridge.config import accepted, enforced
from autobot_mcp_bridge.config.accepted import AcceptedServer
from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.config.load import load
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model import promises
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.instances import DROP_IN, UNITS, folder_of
from autobot_mcp_bridge.units.sandbox import exposure, network, resolvers
from autobot_mcp_bridge.units.sandbox.profiles import profile_name
from autobot_mcp_bridge.units.systemctl import SystemctlError

# systemd-analyze takes 0.05 s; nobody waits longer than this for the figure alone.
JUDGED_WITHIN = 0.4
_LIMITS = ("memory", "memory_high", "cpu", "cpu_weight", "io_weight", "tasks", "open_files")
_SIZES = ("memory", "memory_high")
_WITHOUT_UNITS = ("memory", "open_files")
Sandbox = Mapping[str, Any]


def in_force(places: Places) -> dict[str, AcceptedServer]:
    """The definitions in force by instance: as apply has accepted them, or else as the files say.

    Blocks (disk). None where neither can be read.
    """
    try:
        found = accepted.read(places.accepted).servers
    except (DataError, PermissionError):
        return {}
    if not places.accepted.exists():
        found = tuple(map(AcceptedServer, load(places).servers))
    return {server.spec.instance: server for server in found}


def brief(server: AcceptedServer) -> dict[str, str]:
    """Profile and network mode, for a table."""
    return {
        "profile": profile_name(server.spec, server.argv),
        "network": network.mode_of(server.spec),
    }


def sandbox_of(server: AcceptedServer, places: Places, *, units: bool) -> Sandbox:
    """All that is to be told; None for what there is not, or what nobody could tell in time.

    Blocks (disk, and JUDGED_WITHIN at most for the figure).
    """
    spec = server.spec
    return {
        **brief(server),
        "reach": _reach(spec),
        "paths": spec.paths.model_dump(),
        "limits": {name: getattr(spec.limits, name) for name in _LIMITS},
        "exposure": _exposure(spec.instance) if units else None,
        "max_exposure": spec.max_exposure,
        "credentials": {
            variable: credential.name or credential.file
            for variable, credential in sorted(spec.secrets.items())
        },
        "sessions": spec.sessions,
        "not_kept": _not_kept(spec, places, units=units),
    }


def lines_of(found: Sandbox, *, units: bool) -> Iterator[tuple[str, str]]:
    """The same for people: what without units does not count is left out."""
    if units:
        yield "sandbox", f"profile {found['profile']}{_judged(found)}"
        yield "network", found["reach"] or found["network"]
        for key, paths in found["paths"].items():
            if paths:
                yield f"may {key}", ", ".join(paths)
    else:
        yield "sandbox", "none: there are no units"
    limits = found["limits"]
    kept = limits if units else {name: limits[name] for name in _WITHOUT_UNITS}
    yield "limits", ", ".join(_limits(kept))
    if found["credentials"]:
        yield (
            "secrets",
            ", ".join(f"{key} from {name}" for key, name in found["credentials"].items()),
        )
    for number, sentence in enumerate(found["not_kept"]):
        yield "" if number else "not kept", sentence.removeprefix("not kept on this host: ")


def _not_kept(spec: ServerSpec, places: Places, *, units: bool) -> list[str]:
    if units:
        facts = enforced.read(places.enforced)
        return [sentence for _, sentence in promises.broken(facts, [spec])]
    from autobot_mcp_bridge.runtimes.subprocess.unkept import unkept  # a runtime takes its time

    return unkept(spec)


def _reach(spec: ServerSpec) -> str | None:
    sentence = network.sentence(spec, resolvers.read())
    return None if sentence is None else sentence.removeprefix("network ")


def _exposure(instance: str) -> float | None:
    try:
        text = (folder_of(UNITS, instance) / DROP_IN).read_text(encoding="utf-8")
        return exposure.levels({instance: text}, timeout=JUDGED_WITHIN)[instance]
    except (OSError, UnicodeDecodeError, SystemctlError):
        return None


def _judged(found: Sandbox) -> str:
    figure, bar = found["exposure"], found["max_exposure"]
    if figure is None and bar is None:
        return ""
    shown = "unknown" if figure is None else f"{figure:g}"
    return f", exposure {shown}" + ("" if bar is None else f" of at most {bar:g}")


def _limits(limits: Mapping[str, int | None]) -> Iterable[str]:
    for name, value in limits.items():
        if value is not None:
            shown = show_bytes(value).replace(".0", "") if name in _SIZES else str(value)
            yield f"{name.replace('_', ' ')} {shown}{'%' if name == 'cpu' else ''}"
