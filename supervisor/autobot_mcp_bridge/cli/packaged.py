"""What the commands about packages share: the servers that have one, and where versions are asked."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from autobot_mcp_bridge.cli.common import note, server_of
from autobot_mcp_bridge.config.edit import no_such_server
from autobot_mcp_bridge.config.errors import DataError, MissingError
from autobot_mcp_bridge.config.load import Loaded, load
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.packages import newest
from autobot_mcp_bridge.units.packages.live import is_live
from autobot_mcp_bridge.units.packages.newest import Newest
from autobot_mcp_bridge.units.packages.specs import PackageSpec, parse_command
from autobot_mcp_bridge.units.packages.store import Store
from autobot_mcp_bridge.units.systemctl import has_systemd


def loaded_of(places: Places) -> Loaded:
    """The configuration.

    Raises:
        DataError: it has a mistake; all of them have been told.
    """
    loaded = load(places)
    if loaded.problems:
        for problem in loaded.problems:
            note(str(problem))
        raise DataError("nothing was done; `mcp-bridge check` tells more")
    return loaded


def chosen(loaded: Loaded, names: Sequence[str]) -> list[ServerSpec]:
    """The servers of these names.

    Raises:
        UsageError: one cannot be a name.
        MissingError: there is no such server.
    """
    known = {spec.id: spec for spec in loaded.servers}
    wanted = [server_of(name) for name in names]
    missing = [server.instance for server in wanted if server not in known]
    if missing:
        there = [server.instance for server in known]
        raise MissingError(no_such_server(", ".join(missing), there))
    return [known[server] for server in wanted]


def package_of(spec: ServerSpec) -> PackageSpec | None:
    """The package that is installed for a server; None where none is, or it is not understood."""
    if is_live(spec) or not spec.command:
        return None
    try:
        return parse_command(spec.command)
    except ValueError:
        return None


def alike(package: PackageSpec) -> PackageSpec:
    """The same for all servers that share what is installed."""
    return replace(package, binary=None, args=())


def has_units(places: Places) -> bool:
    """Whether apply has been at work here: servers are units, and root owns the packages."""
    return places.accepted.exists() and has_systemd()


def ask(
    places: Places, loaded: Loaded, packages: Iterable[PackageSpec]
) -> Mapping[PackageSpec, Newest]:
    """What the registries say, by `alike`.

    Raises:
        SystemctlError: as root on a host with units, the sandbox to ask from could not be had.
    """
    store, wanted = Store(places.packages), [alike(package) for package in packages]
    if not wanted:
        return {}
    if has_units(places) and os.geteuid() == 0:
        from autobot_mcp_bridge.units.fetch.ask import ask_in_unit

        return ask_in_unit(wanted, store, loaded.host.environment.pass_)
    return newest.ask(wanted, store, os.environ)
