"""`mcp-bridge apply`: put servers.json to use with systemd; as root."""

import argparse
import difflib
import os
from collections.abc import Iterator

from autobot_mcp_bridge.cli.common import Subparsers, note, places_of, print_json
from autobot_mcp_bridge.config.errors import LEFT_OUT, DeniedError, UnavailableError
from autobot_mcp_bridge.model.states import State
from autobot_mcp_bridge.units.apply import Applier
from autobot_mcp_bridge.units.packages.live import weaker
from autobot_mcp_bridge.units.plan import Plan
from autobot_mcp_bridge.units.systemctl import has_systemd

FAILED = (State.INSTALL_FAILED, State.CREDENTIAL_MISSING)


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "apply",
        help="put servers.json to use with systemd",
        epilog="A file that cannot be read changes nothing: what was applied last stays in force. "
        "A server that this host cannot give what its definition asks for is left out: what was in "
        "force of it stays so, all others are applied, and the exit status is 78.",
    )
    parser.add_argument(
        "--check", action="store_true", help="say what would change, and change nothing"
    )
    parser.add_argument("--diff", action="store_true", help="show the changes of the units")
    parser.add_argument(
        "--purge", action="store_true", help="delete the files of removed servers, too"
    )
    parser.add_argument(
        "--no-retry",
        action="store_true",
        help="leave an install that has failed, until the configuration changes",
    )
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    if not has_systemd():
        raise UnavailableError("this host does not run systemd; `mcp-bridge serve` needs none")
    if os.geteuid() != 0 and not args.check:
        raise DeniedError("apply writes units; run it as root")
    places = places_of(args, adopt_running=False)
    applier = Applier(
        places,
        say=(lambda _line: None) if args.json else note,
        purge=args.purge,
        retry=not args.no_retry,
    )
    there = {**applier.existing(), **applier.addresses.existing()}
    done = applier.plan() if args.check else _apply(applier)
    diff = "".join(_diff(done, there)) if args.diff else ""
    if args.json:
        print_json({**_as_data(done, there), **({"diff": diff} if args.diff else {})})
    else:
        print(diff, end="")
        _summary(done, there, would=args.check)
    return LEFT_OUT if done.left_out else 0


def _apply(applier: Applier) -> Plan:
    try:
        return applier.apply()
    finally:
        applier.try_host()


def _summary(done: Plan, there: dict[str, str], *, would: bool) -> None:
    changes = _changes(done, there)
    for word, instances in changes.items():
        for instance in instances:
            print(f"{'would be ' if would else ''}{word}  {instance}")
    if would and not any(changes.values()):
        print("no unit would change")
    for server in done.accepted.servers:
        if server.refused:
            print(f"left out  {server.spec.instance}: {server.refused}{_instead(server.state)}")
        elif server.state is not None:
            print(f"{server.state.value.replace('_', ' ')}  {server.spec.instance}: {server.why}")
        if server.spec.enabled and (sentence := weaker(server.spec)):
            note(f"{server.spec.instance}: {sentence}")
    ready = sum(s.state is None and s.spec.enabled for s in done.accepted.servers)
    waiting = sum(s.state is State.INSTALLING for s in done.accepted.servers)
    failed = sum(s.state in FAILED for s in done.accepted.servers)
    left = f", {len(done.left_out)} left out" if done.left_out else ""
    print(f"{ready} ready, {waiting} installing, {failed} failed{left}")


def _instead(state: State | None) -> str:
    return "" if state is State.REFUSED else "; what was applied of it last stays in force"


def _changes(done: Plan, there: dict[str, str]) -> dict[str, list[str]]:
    """Against what was there before the first round: apply may need several."""
    texts = {**done.texts, **done.ports}
    kept = {server.spec.instance for server in done.accepted.servers if server.spec.enabled}
    return {
        "added": sorted(texts.keys() - there.keys()),
        "changed": sorted(
            name for name in texts.keys() & there.keys() if texts[name] != there[name]
        ),
        "removed": sorted(there.keys() - kept - done.ports.keys()),
    }


def _as_data(done: Plan, there: dict[str, str]) -> dict[str, object]:
    servers = {
        server.spec.instance: {
            "state": server.state or "ready",
            "why": server.why,
            "refused": server.refused or None,
        }
        for server in done.accepted.servers
        if server.spec.enabled
    }
    return {**_changes(done, there), "servers": servers}


def _diff(done: Plan, there: dict[str, str]) -> Iterator[str]:
    for instances in _changes(done, there).values():
        for name in instances:
            before = there.get(name, "").splitlines(keepends=True)
            after = {**done.texts, **done.ports}.get(name, "").splitlines(keepends=True)
            yield from difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
