"""`mcp-bridge support`: one archive for whoever is to find a fault, without secrets."""

import argparse
import json
import socket
import sys
import time
import urllib.request
from pathlib import Path

from autobot_mcp_bridge import __version__
from autobot_mcp_bridge.cli import control
from autobot_mcp_bridge.cli.common import Subparsers, add_json, note, places_of, print_json
from autobot_mcp_bridge.config.errors import UnavailableError
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.diagnosis.support.bundle import Bundle
from autobot_mcp_bridge.diagnosis.support.known import known_secrets
from autobot_mcp_bridge.diagnosis.support.parts import Sources
from autobot_mcp_bridge.diagnosis.support.scrub import Scrubber

DEADLINE = 120.0  # for all parts together; each has a shorter one of its own
METRICS_WITHIN = 10.0
_MAIN = (sys.executable, "-m", "autobot_mcp_bridge.cli.main")


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "support",
        help="write an archive for a report, without secrets",
        epilog="Everything in it is text: look through it before you send it.",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: a new one here")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    places = places_of(args)
    root = time.strftime(f"mcp-bridge-support-{socket.gethostname()}-%Y%m%dT%H%M%SZ", time.gmtime())
    path: Path = args.output or Path(f"{root}.tar.gz")
    bundle = Bundle(root, time.monotonic() + DEADLINE)
    for name, part in _sources(places).parts():
        bundle.add(name, part)
    bundle.write(path, {"version": __version__, "host": socket.gethostname(), "made": root[-16:]})
    if bundle.left_out:
        note(f"left out, as its manifest says: {', '.join(bundle.left_out)}")
    if args.json:
        print_json({"file": str(path), "left_out": list(bundle.left_out)})
    else:
        print(path)
    return 0


def _sources(places: Places) -> Sources:
    own = (
        *(f"--config-dir={places.config_dir}", f"--state-dir={places.state_dir}"),
        f"--runtime-dir={places.runtime_dir}",
    )
    commands = {name: (*_MAIN, name, "--json", *own) for name in ("check", "list")}
    asked = {"status.json": lambda: _status(places), "metrics.txt": lambda: _metrics(places)}
    return Sources(places, Scrubber(known_secrets(places)), commands, asked)


def _status(places: Places) -> str:
    found = control.ask(places, "GET", "/status", control.STATUS_SECONDS)
    return json.dumps(found, indent=1, ensure_ascii=False)


def _metrics(places: Places) -> str:
    from autobot_mcp_bridge.config.load import load

    operator = load(places).host.operator
    host = f"[{operator.address}]" if ":" in operator.address else operator.address
    url = f"http://{host}:{operator.port}/metrics"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=METRICS_WITHIN) as response:
            text: str = response.read(8 << 20).decode("utf-8", "replace")
    except OSError as error:
        raise UnavailableError(f"{url} does not answer: {error}") from None
    return text
