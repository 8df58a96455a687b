"""All commands with their options, as the parsers of --help have them, for pages and shells."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

# The names in these are not those of servers that are there.
_NEW_NAMES = ("add", "import", "secret")
_FILES = frozenset({"FILE", "PATH"})


class Takes(StrEnum):
    """What a value is, for who completes it."""

    SERVER = "server"
    FILE = "file"
    DIRECTORY = "directory"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Value:
    """An argument, or what an option takes.

    Attributes:
        name: as --help shows it.
        choices: the only ones that are allowed; empty: any.
    """

    name: str
    takes: Takes
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Option:
    names: tuple[str, ...]
    help: str
    value: Value | None
    required: bool = False


@dataclass(frozen=True, slots=True)
class Argument:
    value: Value
    help: str
    optional: bool
    repeated: bool


@dataclass(frozen=True, slots=True)
class Command:
    """A command, a verb of one, or the program itself.

    Attributes:
        words: as they are typed, without the program's name.
        note: what stands below its --help.
        usage: its line of usage, where it is not made of the rest.
    """

    words: tuple[str, ...]
    help: str
    note: str
    usage: str | None
    options: tuple[Option, ...]
    arguments: tuple[Argument, ...]
    commands: tuple["Command", ...]

    @property
    def path(self) -> str:
        return " ".join(self.words)

    def all(self) -> Iterator["Command"]:
        """It, and all below it."""
        yield self
        for command in self.commands:
            yield from command.all()


def described(
    parser: argparse.ArgumentParser, words: tuple[str, ...] = (), text: str = ""
) -> Command:
    """The command that the parser reads, with all below it that --help shows."""
    options, arguments = [], []
    commands: tuple[Command, ...] = ()
    for action in vars(parser)["_actions"]:
        if action.help == argparse.SUPPRESS:
            continue
        if isinstance(action.choices, dict):
            commands = tuple(_below(action, words))
        elif action.option_strings:
            value = None if action.nargs == 0 else _value(action, words)
            names = tuple(action.option_strings)
            options.append(Option(names, _help(action, parser), value, action.required))
        else:
            arguments.append(
                Argument(
                    _value(action, words),
                    _help(action, parser),
                    optional=action.nargs in {"?", "*"},
                    repeated=action.nargs in {"*", "+"},
                )
            )
    return Command(
        words,
        text or parser.description or "",
        parser.epilog or "",
        parser.usage,
        tuple(options),
        tuple(arguments),
        commands,
    )


def _below(action: argparse.Action, words: tuple[str, ...]) -> Iterator[Command]:
    # argparse keeps the lines of --help apart from the parsers; those without one are hidden.
    for shown in vars(action)["_choices_actions"]:
        name = shown.dest
        parsers = action.choices if isinstance(action.choices, dict) else {}
        yield described(parsers[name], (*words, name), shown.help or "")


def _value(action: argparse.Action, words: tuple[str, ...]) -> Value:
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    takes = Takes.ANY
    if name == "NAME" and words and words[0] not in _NEW_NAMES:
        takes = Takes.SERVER
    elif name in _FILES:
        takes = Takes.FILE
    elif name == "DIR":
        takes = Takes.DIRECTORY
    return Value(name, takes, tuple(map(str, action.choices or ())))


def _help(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    text = action.help or ""
    return text % {**vars(action), "prog": parser.prog} if "%" in text else text
