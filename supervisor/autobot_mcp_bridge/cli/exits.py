"""The exit statuses of all commands, for their pages and for people; a test holds them true."""

from typing import NamedTuple


class Exit(NamedTuple):
    """A status, its name in sysexits(3) if it has one, and what it means to a script."""

    status: int
    name: str
    meaning: str


EXITS = (
    Exit(0, "", "done; what was to be changed is so, even if it was before"),
    Exit(
        1,
        "",
        "the command worked, what it asked for failed: a tool's error, an install; "
        "of outdated: there are newer versions",
    ),
    Exit(64, "EX_USAGE", "the command line is wrong, or asks for what is not possible"),
    Exit(65, "EX_DATAERR", "the configuration, or a file that was named, is wrong"),
    Exit(66, "EX_NOINPUT", "a server, a file or a directory that was named is not there"),
    Exit(
        69,
        "EX_UNAVAILABLE",
        "what has to run does not, or did not answer in time; another try may succeed",
    ),
    Exit(70, "EX_SOFTWARE", "a step failed that should not, or the program has a mistake"),
    Exit(74, "EX_IOERR", "the disk is full, or a file cannot be written"),
    Exit(77, "EX_NOPERM", "this user, or this token, may not"),
    Exit(
        78,
        "EX_CONFIG",
        "a server was left out, and the rest is in force; or serve, under systemd: the "
        "configuration is wrong, starting again is vain",
    ),
    Exit(130, "", "interrupted"),
)
