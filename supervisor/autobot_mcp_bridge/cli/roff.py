"""The man pages, from the same parsers as --help; man(7) is the language."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

from autobot_mcp_bridge import __version__
from autobot_mcp_bridge.cli.exits import EXITS
from autobot_mcp_bridge.cli.tree import Argument, Command, Option
from autobot_mcp_bridge.config.document import File

PROGRAM = "mcp-bridge"
CHANGED = (
    "2026-11-30"  # when the form of the pages has changed last; they are the same on each build
)
_FILES = (
    (
        "/etc/mcp-bridge/servers.json, servers.d/*.json",
        "the servers; see mcp-bridge-servers.json(5)",
    ),
    ("/etc/mcp-bridge/host.toml", "the host's own settings; see mcp-bridge-host.toml(5)"),
    ("/var/lib/mcp-bridge", "tokens, packages and the servers' own files"),
    ("/run/mcp-bridge", "sockets"),
)
_WIDTH = 65  # of a line of source, which escapes make longer; mandoc(1) wants 80 at most
_SHORT = 30  # characters of choices in a line; more of them are told with the option
_ENVIRONMENT = "MCP_BRIDGE_CONFIG_DIR, MCP_BRIDGE_STATE_DIR, MCP_BRIDGE_RUNTIME_DIR"


def pages(program: Command) -> Iterator[tuple[str, str]]:
    """Each page's file name, and its text."""
    yield f"{PROGRAM}.1", _program(program)
    for command in program.commands:
        yield f"{_page(command)}.1", _command(command)


def reference(file: File) -> str:
    """A page of section 5: the keys of a file, each with its type and what it is."""
    text = "It is checked with mcp-bridge check. Keys of tables are written with dots."
    name = f"{PROGRAM}-{file.name}"
    lines = [*_head(name, 5, file.summary), ".SH DESCRIPTION", *_words(text), ".SH EXAMPLE", ".nf"]
    lines += [*map(_plain, file.example.splitlines()), ".fi", ".SH KEYS"]
    for key, kind, meaning in file.keys:
        lines += [".TP", f"{_bold(key)} ({_plain(kind)})", *_words(meaning)]
    lines += [".SH SEE ALSO", ".BR mcp\\-bridge (1),", ".BR mcp\\-bridge\\-check (1)"]
    return _text(lines)


def _program(program: Command) -> str:
    lines = [*_head(PROGRAM, 1, "MCP servers as supervised services behind one HTTP proxy")]
    lines += [".SH SYNOPSIS", *_synopsis(program, "COMMAND ...")]
    lines += [".SH DESCRIPTION", *_words(program.help)]
    lines += _words("Each command has a page of its own, and --help.")
    lines += [".SH COMMANDS"]
    for command in program.commands:
        page = _escape(_page(command))
        lines += [".TP", f".BR {page} (1)", *_words(command.help)]
    lines += [".SH OPTIONS", *_options(program.options)]
    lines += [".SH EXIT STATUS", *_exits(), ".SH ENVIRONMENT"]
    lines += [".TP", _bold(_ENVIRONMENT), *_words("the three directories, as the options say them")]
    lines += [".SH FILES"]
    for path, meaning in _FILES:
        lines += [".TP", f".I {_escape(path)}", *_words(meaning)]
    lines += _words(
        "Without root the directories are those of the XDG Base Directory specification."
    )
    lines += [".SH SEE ALSO", ".BR systemctl (1),", ".BR journalctl (1)"]
    return _text(lines)


def _command(command: Command) -> str:
    lines = [*_head(_page(command), 1, command.help), ".SH SYNOPSIS"]
    verbs = [_own(verb, command.options) for verb in command.commands]
    for one in verbs or (command,):
        lines += _synopsis(one)
    lines += [".SH DESCRIPTION", *_words(_sentence(command.help))]
    if command.note:
        lines += [".PP", *_words(command.note)]
    if verbs:
        lines += [".SH VERBS"]
        for verb in verbs:
            lines += [f".SS {_escape(verb.words[-1])}", *_words(_sentence(verb.help))]
            lines += [*_arguments(verb.arguments), *_options(verb.options)]
    if command.arguments:
        lines += [".SH ARGUMENTS", *_arguments(command.arguments)]
    lines += [".SH OPTIONS", *_options(command.options)]
    lines += [".SH EXIT STATUS", *_exits(), ".SH SEE ALSO", ".BR mcp\\-bridge (1)"]
    return _text(lines)


def _own(verb: Command, others: Sequence[Option]) -> Command:
    """Without the options that its command's page tells of once for all."""
    return replace(verb, options=tuple(one for one in verb.options if one not in others))


def _head(name: str, section: int, summary: str) -> list[str]:
    title = _escape(name).upper()
    return [
        f'.TH {title} {section} {CHANGED} "{PROGRAM} {__version__}" "{PROGRAM} manual"',
        # No hyphenation, no stretched lines: words of commands are to be copied.
        ".nh",
        ".ad l",
        ".SH NAME",
        f"{_escape(name)} \\-",
        *_words(summary),
    ]


def _synopsis(command: Command, rest: str = "") -> Iterator[str]:
    name = " ".join((PROGRAM, *command.words))
    if command.usage is not None:
        words = command.usage.removeprefix(name).strip()
        yield ".HP"
        yield f"{_bold(name)} {_plain(words)}"
        return
    yield ".HP"
    pieces = [_bold(name)]
    for option in command.options:
        flag = min(option.names, key=len) if option.value is None else option.names[-1]
        text = _bold(flag) + (f" {_italic(_shown(option))}" if option.value else "")
        pieces.append(text if option.required else f"[{text}]")
    for argument in command.arguments:
        text = _italic(argument.value.name) + (" ..." if argument.repeated else "")
        pieces.append(f"[{text}]" if argument.optional else text)
    if rest:
        pieces.append(_plain(rest))
    yield from pieces


def _options(options: Sequence[Option]) -> Iterator[str]:
    for option in options:
        value = f" {_italic(_shown(option))}" if option.value else ""
        yield ".TP"
        yield ", ".join(f"{_bold(name)}{value}" for name in option.names)
        many = option.value.choices if option.value else ()
        told = "" if len("|".join(many)) <= _SHORT else f": {', '.join(many)}"
        yield from _words(f"{option.help}{told}" or "see --help")


def _shown(option: Option) -> str:
    if option.value is None:
        return ""
    choices = "|".join(option.value.choices)
    return choices if 0 < len(choices) <= _SHORT else option.value.name


def _arguments(arguments: Sequence[Argument]) -> Iterator[str]:
    for argument in arguments:
        yield ".TP"
        yield _italic(argument.value.name)
        choices = ", ".join(argument.value.choices)
        yield from _words(argument.help or (f"one of {choices}" if choices else "see --help"))


def _exits() -> Iterator[str]:
    for status, name, meaning in EXITS:
        yield ".TP"
        yield f"{_bold(str(status))} {_plain(name)}".rstrip()
        yield from _words(meaning)


def _page(command: Command) -> str:
    return "-".join((PROGRAM, *command.words))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "." if text else ""


def _words(text: str) -> Iterator[str]:
    """Text as lines that are no requests of roff's."""
    lines = textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
    yield from map(_plain, lines)


def _plain(text: str) -> str:
    escaped = _escape(text)
    return f"\\&{escaped}" if escaped[:1] in {".", "'"} else escaped


def _escape(text: str) -> str:
    """Characters that are to stay what they are; a bare - would be a hyphen."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = text.replace("^", "\\(ha").replace("~", "\\(ti").replace("`", "\\(ga")
    text = text.replace("'", "\\(aq").replace('"', "\\(dq")
    return re.sub(r"[^\x00-\x7f]", lambda match: f"\\[u{ord(match[0]):04X}]", text)


def _bold(text: str) -> str:
    return f"\\fB{_escape(text)}\\fR"


def _italic(text: str) -> str:
    return f"\\fI{_escape(text)}\\fR"


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines if line)
