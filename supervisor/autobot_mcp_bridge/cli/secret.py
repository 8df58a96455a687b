"""`mcp-bridge secret set|rotate|rm NAME` and `secret list`; as root."""

import argparse
import getpass
import os
import sys
from collections.abc import Iterable

from autobot_mcp_bridge.cli.common import Subparsers, add_json, note, places_of, print_json
from autobot_mcp_bridge.cli.secret_listing import show
from autobot_mcp_bridge.config import accepted
from autobot_mcp_bridge.config.errors import DataError, DeniedError, UnavailableError
from autobot_mcp_bridge.config.files import locked
from autobot_mcp_bridge.config.load import load
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.host import Tls
from autobot_mcp_bridge.model.names import PART_IN_WORDS, is_part
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units import rotations
from autobot_mcp_bridge.units.apply import Applier
from autobot_mcp_bridge.units.credentials import MOST_BYTES
from autobot_mcp_bridge.units.instances import service_of
from autobot_mcp_bridge.units.secret_uses import Use, uses_of, uses_of_host
from autobot_mcp_bridge.units.secrets import Secrets
from autobot_mcp_bridge.units.systemctl import active, has_systemd, systemctl

_LIST = "show the secrets and who uses them, never a value"
RESTARTS = ("idle", "now", "never")


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "secret",
        help="set, rotate, remove and list the secrets of servers",
        epilog="A value is read from stdin, or asked for; it never stands in the command line.",
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    new = verbs.add_parser("set", help="store a new secret, encrypted for this host")
    rotate = verbs.add_parser("rotate", help="replace a secret")
    rotate.add_argument(
        "--restart",
        choices=RESTARTS,
        default="idle",
        help="when running servers get it: between calls (idle), now, or with their next start",
    )
    remove = verbs.add_parser("rm", help="remove a secret")
    remove.add_argument("--force", action="store_true", help="although servers use it")
    for verb in (new, rotate, remove, verbs.add_parser("list", help=_LIST)):
        add_json(verb)
    for verb in (new, rotate, remove):
        verb.add_argument("name", metavar="NAME", help=f"{PART_IN_WORDS}")
    for verb in (new, rotate):  # so that argparse does not repeat what was meant as the value
        verb.add_argument("value", nargs="*", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    if getattr(args, "value", None):
        raise UsageError(
            "a value never stands in the command line, where every user sees it; it is stdin's"
        )
    _demand_systemd()
    places = places_of(args, adopt_running=False)
    secrets, specs = Secrets(places), _specs(places)
    if args.verb == "list":
        show(secrets.list(specs, uses_of_host(_tls(places))), as_json=args.json)
        return 0
    if not is_part(args.name):
        raise UsageError(f"NAME: allowed is {PART_IN_WORDS}")
    own = (use for use in uses_of_host(_tls(places)) if use.credential.name == args.name)
    uses = [*uses_of(specs, args.name), *own]
    match args.verb:
        case "set":
            status = _set(args, places, secrets, uses)
        case "rotate":
            status = _rotate(args, places, secrets, uses)
        case _:
            status = _remove(args, places, secrets, uses)
    if args.json:
        users = sorted(map(str, uses))
        told = {"secret": args.name, "changed": True, "users": users, "applied": status == 0}
        print_json(told)
    return status


def _set(args: argparse.Namespace, places: Places, secrets: Secrets, uses: list[Use]) -> int:
    secrets.demand(args.name, there=False)
    secrets.put(args.name, _value(args.name), uses, there=False)
    note(f"{args.name} is set{_users(uses)}")
    _note(places, args.name)  # what has crashed for want of it is tried again at once
    return _apply(places)


def _remove(args: argparse.Namespace, places: Places, secrets: Secrets, uses: list[Use]) -> int:
    if uses and not args.force:
        raise UsageError(f"{args.name} is in use{_users(uses)}; --force removes it")
    secrets.remove(args.name)
    if places.accepted.exists():
        with locked(places.state_dir):
            rotations.forget(places.state_dir, args.name)
    note(f"{args.name} is removed{_users(uses)}; what runs has it until its end")
    return _apply(places)


def _demand_systemd() -> None:
    """Raise where no unit could be given a secret."""
    if not has_systemd():
        raise UnavailableError(
            "this host does not run systemd, which keeps the secrets and hands them to units"
        )
    if os.geteuid() != 0:
        raise DeniedError(
            "secrets are root's: they are encrypted with the host's key for root's units; "
            "the servers of an ordinary user are no units and can have none"
        )


def _specs(places: Places) -> list[ServerSpec]:
    """All servers of the files, and those in force, should the files have a mistake."""
    specs = {spec.instance: spec for spec in load(places, units=True).servers}
    try:
        before = accepted.read(places.accepted).servers
    except DataError:
        before = ()  # apply makes it anew
    return [*specs.values(), *(s.spec for s in before if s.spec.instance not in specs)]


def _tls(places: Places) -> Tls:
    return load(places, units=True).host.tls


def _value(name: str) -> bytes:
    if sys.stdin.isatty():
        try:
            return getpass.getpass(f"the value of {name}, which is not shown: ").encode(
                "utf-8", "surrogateescape"
            )
        except EOFError:
            return b""
    return sys.stdin.buffer.read(MOST_BYTES + 1)


def _rotate(args: argparse.Namespace, places: Places, secrets: Secrets, uses: list[Use]) -> int:
    secrets.demand(args.name, there=True)
    secrets.put(args.name, _value(args.name), uses, there=True)
    note(f"{args.name} is replaced{_users(uses)}")
    if (secrets.plain / args.name).exists():
        note(f"{secrets.plain / args.name} counts no more; remove it")
    if args.restart == "idle":
        _note(places, args.name)
        note("what runs with it starts anew between calls")
    status = _apply(places)
    if args.restart == "now":
        running = active({service_of(use.instance) for use in uses})
        systemctl("restart", running)
        note(f"restarted: {', '.join(running) or 'none, no server with it ran'}")
    return status


def _note(places: Places, name: str) -> None:
    """Have its servers start anew, as soon as apply has told the proxy."""
    if places.accepted.exists():
        with locked(places.state_dir):
            rotations.note(places.state_dir, name)


def _apply(places: Places) -> int:
    """Have the units follow: a secret that was missing, or is encrypted now."""
    if not places.accepted.exists():
        return 0  # nothing is installed yet
    try:
        Applier(places, note, retry=False).apply()
    except DataError as error:
        note(f"it counts; but the configuration is not applied, for it has mistakes:\n{error}")
        return error.exit_code
    return 0


def _users(uses: Iterable[Use]) -> str:
    names = ", ".join(sorted(map(str, uses)))
    return f": {names}" if names else ""
