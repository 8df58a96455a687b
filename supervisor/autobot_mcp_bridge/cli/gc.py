"""`mcp-bridge gc`: remove what nobody needs any more, and measure what each server takes."""

import argparse
import os
import time
from collections.abc import Mapping

from autobot_mcp_bridge.cli.common import (
    Subparsers,
    duration,
    note,
    places_of,
    print_json,
    print_table,
)
from autobot_mcp_bridge.cli.shown import show_bytes
from autobot_mcp_bridge.config import accepted, disk
from autobot_mcp_bridge.config.disk import Disk
from autobot_mcp_bridge.config.errors import DataError, DeniedError, UnavailableError
from autobot_mcp_bridge.config.files import locked
from autobot_mcp_bridge.config.load import load
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.names import parse_instance
from autobot_mcp_bridge.units.apply import Applier
from autobot_mcp_bridge.units.disk.leftovers import Keep, Leftover, Leftovers, What
from autobot_mcp_bridge.units.disk.sizes import Size, size_of
from autobot_mcp_bridge.units.fetch import fetches
from autobot_mcp_bridge.units.packages.in_use import UnknownUseError
from autobot_mcp_bridge.units.sandbox.confinement import Facts
from autobot_mcp_bridge.units.systemctl import has_systemd

HEAD = ("WHAT", "NAME", "SIZE", "PATH")


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "gc",
        help="remove what nobody needs any more from the disk",
        epilog="Caches of removed servers, package versions that no server means, and what cut-off "
        "installs and failed downloads have left; never what a process uses.",
    )
    parser.add_argument("--dry-run", action="store_true", help="only show it")
    parser.add_argument("--state", action="store_true", help="files of removed servers, too")
    parser.add_argument(
        "--unused-for",
        type=duration,
        default=0.0,
        metavar="TIME",
        help="only what earlier runs, at least so long ago, have found unused as well",
    )
    parser.add_argument("--quiet", action="store_true", help="say nothing where nothing is removed")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    places = places_of(args)
    units = places.accepted.exists() and has_systemd()
    if units and os.geteuid() != 0:
        raise DeniedError("the servers' directories are root's to look into; run it as root")
    places.state_dir.mkdir(parents=True, exist_ok=True)
    if units and not args.dry_run:
        _note_renewal(places)
    leftovers, found = _look(places, args, units=units)
    since = disk.read(places.disk).since({str(each.path) for each in found})
    now = time.time()
    due = [each for each in found if now - since[str(each.path)] >= args.unused_for]
    sizes = {each: size_of(each.path) for each in due}
    failed: list[str] = []
    if due and not args.dry_run:
        with locked(places.state_dir):
            # Measuring took its time, and apply may have put one of them to use.
            still = _look(places, args, units=units)[1]
            due = [each for each in due if each in still]
            for each in tuple(due):
                try:
                    leftovers.take_away(each)
                    del since[str(each.path)]
                except OSError as error:
                    failed.append(f"{each.path}: {error.strerror}")
                    due.remove(each)
    if not args.dry_run:
        leftovers.delete()
    disk.write(places.disk, _measured(leftovers, since))
    for why in failed:
        note(f"not removed: {why}")
    _show(args, {each: sizes[each] for each in due})
    return UnavailableError.exit_code if failed else 0


def _note_renewal(places: Places) -> None:
    """Have apply started where a change of the certificate was not seen, as on a network's disk."""
    if Applier(places, say=note).certificate.is_stale(accepted.read(places.accepted).host.tls):
        (places.runtime_dir / "changed").touch()


def _look(
    places: Places, args: argparse.Namespace, *, units: bool
) -> tuple[Leftovers, list[Leftover]]:
    leftovers = Leftovers(places, _keep(places, args, units=units), Facts() if units else None)
    try:
        return leftovers, leftovers.find(state=args.state)
    except UnknownUseError as error:
        raise UnavailableError(f"nothing is removed: {error}") from None


def _keep(places: Places, args: argparse.Namespace, *, units: bool) -> Keep:
    """What is in force, and what the files say, which apply may not have put to use yet."""
    loaded = load(places, units=units)
    if (args.state or not units) and (loaded.problems or not loaded.found):
        what = "has mistakes" if loaded.problems else "is not there"
        raise DataError(f"the configuration {what}, so nobody knows which servers there are")
    if not units:
        return Keep(loaded.servers)
    known = accepted.read(places.accepted)
    specs = (*loaded.servers, *(server.spec for server in known.servers))
    words = tuple(word for server in known.servers for word in server.argv)
    others = frozenset(Applier(places, say=note).existing())
    return Keep(specs, words, fetches.running(), others)


def _measured(leftovers: Leftovers, unused: dict[str, float]) -> Disk:
    servers: dict[str, dict[str, int]] = {}
    more = set()
    for instance in sorted(leftovers.keep.instances):
        server = parse_instance(instance)
        for what in (What.STATE, What.CACHE):
            total = sum(map(size_of, leftovers.directories(what, server)), start=Size())
            servers.setdefault(instance, {})[what.value] = total.bytes
            if not total.whole:
                more.add(instance)
    packages = size_of(leftovers.places.packages, most=5_000_000).bytes
    return Disk(time.time(), servers, frozenset(more), packages, unused)


def _show(args: argparse.Namespace, due: Mapping[Leftover, Size]) -> None:
    total = sum(due.values(), start=Size())
    if args.json:
        rows = [
            {"what": it.what, "name": it.name, "bytes": size.bytes, "path": str(it.path)}
            for it, size in due.items()
        ]
        key = "would_remove" if args.dry_run else "removed"
        print_json({key: rows, "bytes": total.bytes})
        return
    if due:
        lines = [(it.what, it.name, _bytes(size), str(it.path)) for it, size in due.items()]
        print_table(HEAD, lines)
    if due or not args.quiet:
        done = "would be freed" if args.dry_run else "freed"
        print(f"{_bytes(total)} {done}" if due else "nothing to remove")


def _bytes(size: Size) -> str:
    return f"{'' if size.whole else '>'}{show_bytes(size.bytes)}"
