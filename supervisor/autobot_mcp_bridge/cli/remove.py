"""`mcp-bridge remove NAME`: a server, its tokens and, with --purge, its directory."""

import argparse
import contextlib
import time

from autobot_mcp_bridge.cli import control
from autobot_mcp_bridge.cli.common import (
    Subparsers,
    add_json,
    exists,
    lives,
    note,
    places_of,
    print_json,
    server_of,
)
from autobot_mcp_bridge.config import edit
from autobot_mcp_bridge.config.baselines import BaselineFiles
from autobot_mcp_bridge.config.errors import DeniedError, UnavailableError
from autobot_mcp_bridge.config.headers import remove_header
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.tokens import TokenStore
from autobot_mcp_bridge.model.names import ServerId
from autobot_mcp_bridge.units.apply import Applier
from autobot_mcp_bridge.units.disk.trees import remove_tree
from autobot_mcp_bridge.units.systemctl import has_systemd

GONE_SECONDS = 30.0  # timeouts.stop and the signals after it, at their defaults
GONE_POLL_SECONDS = 0.1


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("remove", help="remove a server")
    parser.add_argument("name", metavar="NAME", help="the whole name: files is not acme.files")
    add_json(parser)
    parser.add_argument("--purge", action="store_true", help="also its directory with its data")


def run(args: argparse.Namespace) -> int:
    server = server_of(args.name)
    places = places_of(args)
    pid = _pid(places, server) if args.purge else None
    edited = edit.remove(places, server)
    TokenStore(places.tokens_d).remove(server.instance)
    remove_header(places, server)
    control.tell(places)  # so that a proxy that runs writes nothing of it any more
    BaselineFiles(places.tools_d).remove(server.instance)
    note(f"{server} is removed from {edited.file}, its tokens are revoked")
    if places.accepted.exists() and has_systemd():
        applier = Applier(places, say=note)
        applier.apply()
        if args.purge and applier.purge_files(server):
            note(f"the files of {server} are deleted")
    elif args.purge:
        _purge(places, server, pid)
    if args.json:
        told = {"server": server.instance, "changed": True, "file": str(edited.file)}
        print_json({**told, "purged": args.purge})
    return 0


def _purge(places: Places, server: ServerId, pid: int | None) -> None:
    directory = places.server_dir(server)
    if not exists(directory):
        return
    if pid is not None:
        _wait_until_gone(places, server, pid)
    try:
        remove_tree(directory)
    except OSError as error:
        raise DeniedError(f"{error.filename}: {error.strerror}") from error
    for parent in (directory.parent, directory.parent.parent):
        with contextlib.suppress(OSError):  # another server of the project or tenant is there
            parent.rmdir()
    note(f"{directory} is deleted")


def _pid(places: Places, server: ServerId) -> int | None:
    """The server's process, as the running proxy tells."""
    found = control.status(places) or {}
    for row in found.get("servers", ()):
        if row.get("instance") == server.instance and isinstance(row.get("pid"), int):
            return int(row["pid"])
    return None


def _wait_until_gone(places: Places, server: ServerId, pid: int) -> None:
    """Let the proxy stop the server before its directory is taken away.

    Raises:
        UnavailableError: it still runs after GONE_SECONDS.
    """
    with contextlib.suppress(UnavailableError):  # the proxy ended meanwhile, and its servers
        control.reload(places)
    deadline = time.monotonic() + GONE_SECONDS
    while lives(pid):
        if time.monotonic() > deadline:
            raise UnavailableError(f"{server} still runs; {places.server_dir(server)} is left")
        time.sleep(GONE_POLL_SECONDS)
