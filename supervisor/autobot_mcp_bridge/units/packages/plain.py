"""A command that names a program of the host: resolved once, to an absolute path (BUGS S10)."""

import os
from collections.abc import Mapping, Sequence

from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.units.access.reach import find_program, in_reach, search_path
from autobot_mcp_bridge.units.packages.job import InstallError


def plain_command(argv: Sequence[str], environ: Mapping[str, str]) -> Command:
    """The command with its first word as an absolute path.

    Raises:
        InstallError: it is not found, or not in reach of a server's uid.
    """
    name = argv[0]
    program = find_program(name, environ)
    if program is None:
        where = "" if os.sep in name else f"; searched: {search_path(environ)}"
        raise InstallError(f"{name}: no such program{where}")
    return Command((str(in_reach(program)), *argv[1:]))
