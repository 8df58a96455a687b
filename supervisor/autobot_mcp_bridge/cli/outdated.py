"""`mcp-bridge outdated [NAME…]`: the version of each package, what may be had, and what there is."""

import argparse
from dataclasses import asdict, dataclass

from autobot_mcp_bridge.cli.common import Subparsers, note, places_of, print_json, print_table
from autobot_mcp_bridge.cli.packaged import alike, ask, chosen, loaded_of, package_of
from autobot_mcp_bridge.config.errors import UnavailableError
from autobot_mcp_bridge.units.packages.newest import Newest
from autobot_mcp_bridge.units.packages.specs import PackageSpec
from autobot_mcp_bridge.units.packages.store import Store

OUTDATED = 1
_HEAD = ("NAME", "PACKAGE", "INSTALLED", "ALLOWED", "NEWEST", "STATUS")


@dataclass(frozen=True, slots=True)
class Row:
    """One server's package; a version that is not known is None.

    Attributes:
        allowed: the newest that its command allows: what an upgrade would give.
        newest: the newest of all.
        pinned: whether its command names one version, so that there is nothing to upgrade.
        why: why the registry's versions are not known.
    """

    name: str
    package: str
    installed: str | None
    allowed: str | None
    newest: str | None
    pinned: bool
    why: str

    @property
    def can_be_upgraded(self) -> bool:
        known = self.installed is not None and self.allowed is not None
        return known and not self.pinned and self.installed != self.allowed

    @property
    def status(self) -> str:
        if self.why:
            return self.why
        if self.installed is None:
            return "not installed"
        if self.can_be_upgraded:
            return f"mcp-bridge upgrade {self.name}"
        if self.installed == self.newest:
            return "up to date"
        return "pinned" if self.pinned else "the newest that its command allows"


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "outdated",
        help="show which packages have newer versions",
        epilog="Exit status: 0 when every package is the newest that its command allows, 1 when "
        "an upgrade would change one, 69 when a registry could not be asked; its row says why.",
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="only these servers")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    places = places_of(args)
    loaded = loaded_of(places)
    specs = chosen(loaded, args.names) or loaded.servers
    packages = {spec.instance: package_of(spec) for spec in specs}
    for name, package in packages.items():
        if package is None and args.names:
            note(f"{name}: its command names no package of npx or uvx")
    wanted = {name: package for name, package in packages.items() if package is not None}
    store, heard = Store(places.packages), ask(places, loaded, wanted.values())
    rows = [_row(name, package, store, heard[alike(package)]) for name, package in wanted.items()]
    if args.json:
        print_json({"servers": [asdict(row) for row in rows]})
    else:
        print_table(_HEAD, [_cells(row) for row in rows])
    if any(row.why for row in rows):
        return UnavailableError.exit_code
    return OUTDATED if any(row.can_be_upgraded for row in rows) else 0


def _row(name: str, package: PackageSpec, store: Store, heard: Newest) -> Row:
    found = store.find(package)
    installed = found.version if found is not None else None
    label = f"{package.kind.value}:{package.label}"
    return Row(name, label, installed, heard.allowed, heard.newest, package.exact, heard.why)


def _cells(row: Row) -> tuple[str, ...]:
    versions = (row.installed or "-", row.allowed or "-", row.newest or "-")
    return (row.name, row.package, *versions, " ".join(row.status.split()))
