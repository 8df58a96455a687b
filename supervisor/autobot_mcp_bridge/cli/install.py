"""`mcp-bridge install` and `mcp-bridge uninstall`; standard library only, for `make install`."""

import argparse
import os
from pathlib import Path

from autobot_mcp_bridge.cli.common import Subparsers, add_json, note, print_json
from autobot_mcp_bridge.config.errors import DeniedError, UnavailableError
from autobot_mcp_bridge.config.places import resolve_places
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.units.host.install import Installer
from autobot_mcp_bridge.units.host.uninstall import Uninstaller
from autobot_mcp_bridge.units.packages.job import InstallError
from autobot_mcp_bridge.units.systemctl import has_systemd

UMASK = 0o022  # the proxy's user reads what is laid


def add_parser(subparsers: Subparsers) -> None:
    install = subparsers.add_parser(
        "install",
        help="put the program and its units in place on this host",
        epilog="Without --root it also makes the user, and enables and starts the proxy.",
    )
    uninstall = subparsers.add_parser("uninstall", help="take everything off this host")
    install.add_argument(
        "--package",
        metavar="NAME",
        help="with --root: the files become the package NAME's, which alone may change them",
    )
    uninstall.add_argument(
        "--keep-data",
        action="store_true",
        help="leave the configuration, tokens, packages and servers' files",
    )
    for parser in (install, uninstall):
        add_json(parser)
        parser.add_argument(
            "--root",
            type=Path,
            default=Path("/"),
            metavar="DIR",
            help="work on the files below DIR, such as a package's; tell systemd nothing",
        )


def run(args: argparse.Namespace) -> int:
    root = Path(os.path.realpath(args.root))
    if root == Path("/"):
        if args.command == "install" and args.package:
            raise UsageError("--package counts below a root directory only: add --root DIR")
        if not has_systemd():
            text = "this host does not run systemd; --root DIR only lays the files"
            raise UnavailableError(text)
        if os.geteuid() != 0:
            raise DeniedError(f"{args.command} changes the system; run it as root")
    os.umask(UMASK)
    say = note if args.json else _say
    try:
        if args.command == "uninstall":
            done = Uninstaller(root, say, keep_data=args.keep_data).uninstall()
            return _told(args, done, "uninstalled" if done else "nothing was installed")
        installer = Installer(root, say, args.package)
        done = installer.install(dict(os.environ), resolve_places(uid=0, environ={}))
    except InstallError as error:
        raise UnavailableError(str(error)) from None
    except OSError as error:
        raise UnavailableError(f"{error.filename}: {error.strerror}") from None
    nothing = "everything is in place already; nothing was changed"
    return _told(args, done, "installed" if done else nothing)


def _told(args: argparse.Namespace, changed: bool, text: str) -> int:
    if args.json:
        print_json({"changed": changed})
    else:
        _say(text)
    return 0


def _say(line: str) -> None:
    print(line, flush=True)
