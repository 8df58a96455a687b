"""Containers with a real systemd, from the command line.

    python tests/lab/lab.py base [SUITE…]               make the cached base root file systems
    python tests/lab/lab.py up NAME [--suite SUITE] [--bind-ro HERE:INSIDE]… [--host-network]
    python tests/lab/lab.py exec NAME [--timeout S] -- COMMAND…
    python tests/lab/lab.py copy NAME SOURCE TARGET
    python tests/lab/lab.py reboot NAME
    python tests/lab/lab.py down NAME… | --all
    python tests/lab/lab.py list
    python tests/lab/lab.py address NAME
    python tests/lab/lab.py net -- COMMAND…             within the lab's network

Needs root, mmdebstrap, systemd-nspawn, and the v1 cgroup controllers.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from lab import entering, host, labs, network, recipe
from lab.base import base
from lab.containers import Container
from lab.places import Lab
from lab.problems import LabError, LabTimeoutError
from lab.spec import Bind

TIMED_OUT = 124  # as timeout(1)
EXEC_TIMEOUT = 600.0


def make_bases(lab: Lab, asked: argparse.Namespace) -> int:
    for suite in asked.suite or recipe.SUITES:
        print(base(lab.cache, suite))
    return 0


def up(lab: Lab, asked: argparse.Namespace) -> int:
    binds = [Bind(*text.split(":", 1)) for text in asked.bind_ro if ":" in text]
    if len(binds) < len(asked.bind_ro):
        raise LabError("--bind-ro wants HERE:INSIDE")
    network_of = {"host_network": asked.host_network}
    labs.up(lab, asked.name, asked.suite, binds=binds, **network_of)
    return 0


def run(lab: Lab, asked: argparse.Namespace) -> int:
    container = Container(lab.place(asked.name))
    try:
        with entering.start(container, asked.command, None, own=False) as command:
            status = command.wait(asked.timeout)
    except LabTimeoutError as error:
        print(error, file=sys.stderr)
        return TIMED_OUT
    return shell_status(status)


def shell_status(status: int) -> int:
    return status if status >= 0 else 128 - status


def copy(lab: Lab, asked: argparse.Namespace) -> int:
    Container(lab.place(asked.name)).copy(asked.source, asked.target, timeout=EXEC_TIMEOUT)
    return 0


def reboot(lab: Lab, asked: argparse.Namespace) -> int:
    Container(lab.place(asked.name)).reboot()
    return 0


def down(lab: Lab, asked: argparse.Namespace) -> int:
    named = [lab.place(name) for name in asked.name]
    for place in lab.places() if asked.all else named:
        Container(place).down()
    return 0


def show(lab: Lab, asked: argparse.Namespace) -> int:
    for place in lab.places():
        container = Container(place)
        on = place.address.read_text(encoding="utf-8") if place.address.exists() else "host network"
        print(place.name, container.spec.suite, "up" if container.is_up else "down", on)
    return 0


def address(lab: Lab, asked: argparse.Namespace) -> int:
    print(lab.place(asked.name).address.read_text(encoding="utf-8"))
    return 0


def net(lab: Lab, asked: argparse.Namespace) -> int:
    try:
        status = network.attached(lab, asked.command, timeout=asked.timeout)
    except LabTimeoutError as error:
        print(error, file=sys.stderr)
        return TIMED_OUT
    return shell_status(status)


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    def verb(name: str, does: Callable[[Lab, argparse.Namespace], int]) -> argparse.ArgumentParser:
        made = verbs.add_parser(name)
        made.set_defaults(does=does)
        return made

    verb("base", make_bases).add_argument("suite", nargs="*", choices=[[], *recipe.SUITES])
    start = verb("up", up)
    start.add_argument("name")
    start.add_argument("--suite", choices=recipe.SUITES, default="bookworm")
    start.add_argument("--bind-ro", action="append", default=[], metavar="HERE:INSIDE")
    start.add_argument("--host-network", action="store_true", help="with the package settings")
    within = verb("exec", run)
    within.add_argument("name")
    within.add_argument("--timeout", type=float, default=EXEC_TIMEOUT)
    within.add_argument("command", nargs="+")
    into = verb("copy", copy)
    into.add_argument("name")
    into.add_argument("source", type=Path)
    into.add_argument("target")
    verb("reboot", reboot).add_argument("name")
    end = verb("down", down)
    end.add_argument("name", nargs="*")
    end.add_argument("--all", action="store_true")
    verb("list", show)
    verb("address", address).add_argument("name")
    outside = verb("net", net)
    outside.add_argument("--timeout", type=float, default=EXEC_TIMEOUT)
    outside.add_argument("command", nargs="+")
    return parser


def main() -> int:
    asked = arguments().parse_args()
    lab = Lab.of_checkout()
    why = host.unavailable(lab.cache)
    if why is not None:
        print(f"there can be no lab here: {why}", file=sys.stderr)
        return 1
    try:
        return int(asked.does(lab, asked))
    except LabError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
