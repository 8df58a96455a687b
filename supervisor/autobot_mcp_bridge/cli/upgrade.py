"""`mcp-bridge upgrade NAME [--rollback]`: exchange the version of a server's package."""

import argparse
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from autobot_mcp_bridge.cli import control
from autobot_mcp_bridge.cli.common import Subparsers, add_json, note, places_of, print_json
from autobot_mcp_bridge.cli.packaged import alike, ask, chosen, has_units, loaded_of, package_of
from autobot_mcp_bridge.config import accepted, edit
from autobot_mcp_bridge.config.errors import DataError, DeniedError, UnavailableError
from autobot_mcp_bridge.config.load import Loaded
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.problem import json_path
from autobot_mcp_bridge.config.sources import read_sources
from autobot_mcp_bridge.model.errors import BridgeError, UsageError
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.fetch.fetches import Fetches
from autobot_mcp_bridge.units.packages.installer import package_command, upgrade_package
from autobot_mcp_bridge.units.packages.job import InstallError, Job
from autobot_mcp_bridge.units.packages.node import WHEEL
from autobot_mcp_bridge.units.packages.specs import PackageSpec
from autobot_mcp_bridge.units.packages.store import Resolution, Store
from autobot_mcp_bridge.units.systemctl import systemctl

APPLY = "mcp-bridge-apply.service"
APPLY_RUNS = 3


class NotUpgradedError(BridgeError):
    """The version that was in force still is; the message says why."""

    exit_code = 1


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "upgrade",
        help="exchange the version of a server's package, or go back",
        epilog="Calls in flight end with the old version. Exit status: 1 when the install failed, "
        "which leaves the old version in force; 65 when the command names one exact version.",
    )
    parser.add_argument("name", metavar="NAME", help="the whole name: files is not acme.files")
    parser.add_argument(
        "--rollback", action="store_true", help="back to the version before, offline and at once"
    )
    parser.add_argument(
        "--check", action="store_true", help="say what would change, and change nothing"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    places = places_of(args)
    loaded = loaded_of(places)
    (server,) = chosen(loaded, [args.name])
    package = package_of(server)
    if package is None:
        raise UsageError(f"{server.instance}: its command names no package of npx or uvx")
    if package.exact:
        raise DataError(_pinned(places, loaded, server, package))
    if has_units(places) and os.geteuid() != 0 and not args.check:
        raise DeniedError("packages of units are root's; run it as root")
    sharing = [spec for spec in loaded.servers if _shares(spec, package)]
    others = [spec.instance for spec in sharing if spec is not server]
    if others:
        note(f"of the same package, and changed with it: {', '.join(others)}")
    store = Store(places.packages)
    if args.check:
        current, then = _foretell(places, loaded, package, store, back=args.rollback)
        if args.json:
            print_json(_as_data(server, package, current, then))
        else:
            arrow = f"{current or '-'} -> {then}" if then != current else current
            print(f"{package.label}  {arrow}")
        return 0
    store.prepare()
    job = Job(store.log_file("upgrade"), dict(os.environ))
    try:
        with store.locked("upgrade", job):
            before = store.resolution(package)
            if args.rollback:
                store.roll_back(package, job)
            else:
                _upgrade(places, loaded, package, sharing, store, job)
            now = store.resolution(package)
            _put_to_use(places, sharing, store)
            _prune(loaded, package, before, store, job)
    except InstallError as error:
        kept = store.resolved(package)
        left = f"; version {kept} stays in force" if kept is not None else ""
        raise NotUpgradedError(f"{server.instance}: {error}{left}") from None
    if args.json and now is not None:
        old = before.version if before is not None else None
        print_json(_as_data(server, package, old, now.version))
    else:
        _tell(server, package, before, now, store)
    return 0


def _as_data(
    server: ServerSpec, package: PackageSpec, before: str | None, version: str | None
) -> dict[str, Any]:
    told = {"server": server.instance, "package": package.label, "changed": before != version}
    return {**told, "before": before, "version": version}


def _upgrade(
    places: Places,
    loaded: Loaded,
    package: PackageSpec,
    sharing: Sequence[ServerSpec],
    store: Store,
    job: Job,
) -> None:
    note(f"installing the newest version of {package.label} …")
    binaries = {found.binary for spec in sharing if (found := package_of(spec)) is not None}
    if has_units(places):
        fetches = Fetches(places.state_dir, store)
        fetches.upgrade(alike(package), binaries, loaded.host.environment.pass_)
    else:
        upgrade_package(package, binaries, store, job)


def _put_to_use(places: Places, sharing: Sequence[ServerSpec], store: Store) -> None:
    """Have units and proxy take what the store means now; servers change between calls."""
    if has_units(places):
        # A run that was under way already may have looked before the change.
        for _ in range(APPLY_RUNS):
            systemctl("start", [APPLY])
            if _is_applied(places, sharing, store):
                break
    with suppress(UnavailableError):  # none runs, and the next one reads the store anyway
        control.reload(places)


def _is_applied(places: Places, sharing: Sequence[ServerSpec], store: Store) -> bool:
    executed = {
        server.spec.instance: server.argv for server in accepted.read(places.accepted).servers
    }
    wanted = [(executed.get(spec.instance), package_of(spec)) for spec in sharing]
    return all(
        (found := store.find(package)) is not None
        and argv == tuple(package_command(package, found).argv)
        for argv, package in wanted
        if argv and package is not None  # it can be started
    )


def _prune(
    loaded: Loaded, package: PackageSpec, before: Resolution | None, store: Store, job: Job
) -> None:
    """Delete the version that this upgrade has made the last but two."""
    now = store.resolution(package)
    old = before.before if before is not None else None
    if old is None or now is None or old in (now.version, now.before):
        return
    found = (package_of(spec) for spec in loaded.servers)
    exact = {
        (other.kind, other.directory_name, other.version) for other in (*found, WHEEL) if other
    }
    if (package.kind, package.directory_name, old) not in exact:
        store.forget(package, old, job)


def _foretell(
    places: Places, loaded: Loaded, package: PackageSpec, store: Store, *, back: bool
) -> tuple[str | None, str | None]:
    """The version in force, and the one that it would be then."""
    known = store.resolution(package)
    now = known.version if known is not None else None
    if back:
        if known is None or known.before is None:
            raise NotUpgradedError(f"{package.label} has not been upgraded: nothing to go back to")
        then: str | None = known.before
    else:
        heard = ask(places, loaded, [package])[alike(package)]
        if heard.why:
            raise UnavailableError(f"{package.label}: {heard.why}")
        then = heard.allowed
    return now, then


def _tell(
    server: ServerSpec,
    package: PackageSpec,
    before: Resolution | None,
    now: Resolution | None,
    store: Store,
) -> None:
    found = store.find(package)
    if found is None or now is None:
        raise NotUpgradedError(f"{package.label} is not there any more")
    integrity = f", {found.integrity}" if found.integrity else ""
    if before == now:
        print(f"{package.label}  {now.version} is the newest that its command allows{integrity}")
        return
    print(f"{package.label}  {before.version if before else '-'} -> {now.version}{integrity}")
    note(f"`mcp-bridge upgrade {server.instance} --rollback` goes back")


def _shares(spec: ServerSpec, package: PackageSpec) -> bool:
    found = package_of(spec)
    return found is not None and found.package == package.package


def _pinned(places: Places, loaded: Loaded, server: ServerSpec, package: PackageSpec) -> str:
    entry = edit.find(read_sources(places), server.id)
    where = f"{entry.file} {json_path(entry.place(('command',)))}" if entry is not None else "?"
    heard = ask(places, loaded, [package])[alike(package)]
    newest = heard.why or f"the newest is {heard.newest}"
    return f"{server.instance}: its command names {package.label}; change it in {where}; {newest}"
