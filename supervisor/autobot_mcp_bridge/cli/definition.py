"""A server's definition from the options of a command, and its mistakes in their words."""

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from autobot_mcp_bridge.config.load import check
from autobot_mcp_bridge.config.problem import Problem, json_path
from autobot_mcp_bridge.model.errors import UsageError

_FILE = "file:"
_ROOT = "$."
_EQUALS = re.compile("=")
_HEADER = re.compile("[:=]")  # neither is part of a header's name (RFC 9110 section 5.6.2)
# These say which server is meant, and what it runs: words of the command line itself.
_OWN = ("tenant", "project", "name", "command")


@dataclass(frozen=True, slots=True)
class _Option:
    """One option and the key of the definition that it sets; an option with `many` is a list."""

    flag: str
    key: str
    metavar: str
    help: str
    many: bool = False


_GROUPS = {
    "what it is given": (
        _Option("--cwd", "cwd", "DIR", "working directory (default: its own)"),
        _Option("--url", "url", "URL", "a remote server's endpoint, instead of a command"),
    ),
    "what it may do": (
        _Option(
            "--read",
            "paths.read",
            "PATH",
            "what it may read, with all below; of homes it sees nothing else, elsewhere what "
            "everybody may read",
            many=True,
        ),
        _Option(
            "--write",
            "paths.write",
            "PATH",
            "what it may write, with all below; nothing else but its own directories",
            many=True,
        ),
        _Option(
            "--network", "network.mode", "MODE", "none (default), loopback, list, names or internet"
        ),
        _Option(
            "--allow",
            "network.allow",
            "DESTINATION",
            "what it may reach: an address or network (list), HOST or HOST:PORT (names)",
            many=True,
        ),
        _Option("--profile", "profile", "NAME", "strict, python, node, npx, uvx or browser"),
        _Option("--tool-allow", "tools.allow", "GLOB", "a tool that may be used", many=True),
    ),
    "what it may use": (
        _Option("--memory", "limits.memory", "SIZE", "of all its processes (512M)"),
        _Option("--cpu", "limits.cpu", "PERCENT", "of one processor (100%%)"),
    ),
    "how it is served": (_Option("--sessions", "sessions", "HOW", "shared (default) or isolated"),),
}


_FLAGS = {option.key: option.flag for options in _GROUPS.values() for option in options}


@dataclass(slots=True)
class Definition:
    """Keys of a server, and which words of the command line have set them.

    Attributes:
        settings: as in servers.json, without tenant, project and name.
        words: place, as in `Problem`, to what people have typed for it.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)

    def put(self, key: str, value: object, word: str) -> None:
        """Set a dotted key.

        Raises:
            UsageError: what stands on the way has no keys.
        """
        *way, last = key.split(".")
        inner = self.settings
        for part in way:
            inner = inner.setdefault(part, {})
            if not isinstance(inner, dict):
                raise UsageError(f"{word}: {part} is set as a whole already")
        inner[last] = value
        self.words[key] = word

    def refuse_mistakes(self, named: Mapping[str, Any], *, units: bool) -> None:
        """Check it by itself, before any file is looked at.

        Raises:
            UsageError: it has mistakes: all of them, each with the option that it comes from.
        """
        problems = check({**named, **self.settings}, units=units)
        if problems:
            raise UsageError("\n".join(map(self._told, problems)))

    def _told(self, problem: Problem) -> str:
        path = problem.path.removeprefix(_ROOT)
        words = {**_FLAGS, **self.words}
        # Also an option that is not there may be what is missing.
        keys = [key for key in words if _meets(path, key)]
        where = words[max(keys, key=len)] if keys else problem.path
        return ": ".join(part for part in (where, problem.value, problem.allowed) if part)


def _meets(path: str, key: str) -> bool:
    """Whether the one place is the other, or in it."""
    longer, shorter = sorted((path, key), key=len, reverse=True)
    return longer == shorter or longer.startswith((f"{shorter}.", f"{shorter}["))


def add_options(parser: argparse.ArgumentParser) -> None:
    groups = {title: parser.add_argument_group(title) for title in _GROUPS}
    given = groups["what it is given"]
    given.add_argument(
        "--env", action="append", default=[], metavar="KEY=VALUE", help="not for secrets"
    )
    given.add_argument(
        "--secret",
        action="append",
        default=[],
        metavar="KEY=SECRET",
        help="a secret of `mcp-bridge secret`, or a file of root's, as a variable; "
        "KEY=file:SECRET: the variable has the path of a file that holds it",
    )
    given.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="NAME=TEXT",
        help="with --url, also as 'NAME: TEXT'; not for secrets",
    )
    given.add_argument(
        "--header-secret",
        action="append",
        default=[],
        metavar="NAME=[PREFIX ]SECRET",
        help="with --url: a header from a secret, such as Authorization='Bearer tracker-key'",
    )
    for title, options in _GROUPS.items():
        for option in options:
            groups[title].add_argument(
                option.flag,
                action="append" if option.many else "store",
                metavar=option.metavar,
                help=option.help,
            )
    serving = groups["how it is served"]
    serving.add_argument("--warm", action="store_true", help="start it without waiting for a call")
    serving.add_argument("--disabled", action="store_true", help="do not serve it yet")
    serving.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any other key of a definition, such as limits.tasks=64 or timeouts.call=5m",
    )


def definition_of(args: argparse.Namespace) -> Definition:
    """What the options say; nothing of it is checked but their own form.

    Raises:
        UsageError: an option is not of its form.
    """
    made = Definition()
    if args.rest:
        made.put("command", args.rest, "the command")
    for options in _GROUPS.values():
        for option in options:
            value = getattr(args, option.flag[2:].replace("-", "_"))
            if value is not None:
                made.put(option.key, value, option.flag)
    for name, value in _pairs("--env", "KEY=VALUE", args.env):
        made.settings.setdefault("env", {})[name] = value
        made.words[_place("env", name)] = f"--env {name}"
    for name, text in _pairs("--header", "NAME=TEXT", args.header, _HEADER):
        made.settings.setdefault("headers", {})[name] = text.strip()
        made.words[_place("headers", name)] = f"--header {name}"
    for name, text in _pairs("--header-secret", "NAME=[PREFIX ]SECRET", args.header_secret):
        prefix, blank, secret = text.rpartition(" ")
        entry = {"credential": secret, **({"prefix": prefix + blank} if prefix else {})}
        made.settings.setdefault("headers", {})[name] = entry
        made.words[_place("headers", name)] = f"--header-secret {name}"
    for name, source in _pairs("--secret", "KEY=SECRET or KEY=file:SECRET", args.secret):
        made.settings.setdefault("credentials", {})[name] = _credential(source)
        made.words[_place("credentials", name)] = f"--secret {name}"
    if args.warm:
        made.put("warm", value=True, word="--warm")
    if args.disabled:
        made.put("enabled", value=False, word="--disabled")
    for key, text in _pairs("--set", "KEY=VALUE", args.set):
        if key in _OWN:
            raise UsageError(f"--set {key}: allowed is any key but {', '.join(_OWN)}")
        made.put(key, _value(text), f"--set {key}")
    return made


def _pairs(
    flag: str, form: str, texts: list[str], between: re.Pattern[str] = _EQUALS
) -> Iterator[tuple[str, str]]:
    for text in texts:
        name, *value = between.split(text, maxsplit=1)
        if not name or not value:
            raise UsageError(f"{flag}: allowed is {form}")
        yield name, value[0]


def _place(*loc: str) -> str:
    return json_path(loc).removeprefix(_ROOT)


def _credential(source: str) -> str | dict[str, str]:
    """As in `credentials`: a name, or a path of root's; `file:` before it asks for a path."""
    text = source.removeprefix(_FILE)
    entry = {"file" if text.startswith("/") else "name": text}
    if source.startswith(_FILE):
        return {**entry, "as": "file"}
    return text if "name" in entry else entry


def _value(text: str) -> object:
    """What JSON reads of it, else the text itself: 64, true, ["a"], 5m."""
    try:
        return json.loads(text)
    except ValueError:
        return text
