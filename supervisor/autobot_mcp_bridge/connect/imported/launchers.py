"""How clients start servers, in the words that are understood here: npx, uvx, a program, or a URL.

Pure but for nothing: no package is looked up, no program is run.
"""

import posixpath
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from autobot_mcp_bridge.units.packages.specs import parse_command

# Images of the reference servers, which are packages as well (github.com/modelcontextprotocol/servers).
IMAGES = {
    "mcp/everything": ("npx", "-y", "@modelcontextprotocol/server-everything"),
    "mcp/fetch": ("uvx", "mcp-server-fetch"),
    "mcp/memory": ("npx", "-y", "@modelcontextprotocol/server-memory"),
    "mcp/sequentialthinking": ("npx", "-y", "@modelcontextprotocol/server-sequential-thinking"),
    "mcp/time": ("uvx", "mcp-server-time"),
}
# Options of `docker run` that take a word: the image stands behind the last option.
_VALUED = frozenset(
    [
        "-e",
        "--env",
        "--env-file",
        "-v",
        "--volume",
        "--mount",
        "-p",
        "--publish",
        "--name",
        "--network",
        "--net",
        "-w",
        "--workdir",
        "-u",
        "--user",
        "--entrypoint",
        "-l",
        "--label",
        "-m",
        "--memory",
        "--cpus",
        "--platform",
        "--pull",
        "--add-host",
        "--tmpfs",
        "--device",
        "--cap-add",
        "--cap-drop",
        "--security-opt",
        "--restart",
        "--log-driver",
        "--log-opt",
        "--gpus",
        "--hostname",
        "-h",
        "--dns",
        "--shm-size",
        "--ulimit",
        "--cidfile",
        "--ip",
        "--link",
        "--volumes-from",
    ]
)
_IDLE = frozenset(
    [
        "-i",
        "-t",
        "-it",
        "-ti",
        "--interactive",
        "--tty",
        "--rm",
        "--init",
        "-d",
        "--detach",
        "--pull",
        "--name",
    ]
)
_WINDOWS = re.compile(r"[A-Za-z]:\\|.*\\.*\.exe$", re.IGNORECASE)
_ENDING = re.compile(r"\.(?:cmd|exe|bat|ps1)$", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_REMOTE = re.compile(r"mcp-remote(?:@[\w.^~-]+)?")


@dataclass(slots=True)
class Launch:
    """What is to be started.

    Attributes:
        words: the command; empty where there is a URL.
        env: variables that stood among the words, as they stood there.
        passed: names of variables that are only named there.
        url: of an upstream, in the place of a command.
        headers: of that upstream, `Name: value`.
        profile: the profile that it needs; empty: the usual one.
        notes: what was changed, and what was dropped.
        cannot: why it cannot be had.
    """

    words: list[str]
    env: dict[str, str] = field(default_factory=dict, repr=False)
    passed: list[str] = field(default_factory=list)
    url: str | None = None
    headers: list[str] = field(default_factory=list, repr=False)
    profile: str = ""
    notes: list[str] = field(default_factory=list)
    cannot: str = ""


def understood(command: str, words: Sequence[str]) -> Launch:
    """The command in words of this product."""
    launch = Launch([command, *words])
    try:
        if not words and " " in command.strip() and not command.startswith(("/", ".")):
            launch.words = shlex.split(command)
        for step in (_windows, _env, _runner):
            step(launch)
    except ValueError:
        launch.cannot = "command: its quotes have no end"
    if not launch.words:
        launch.cannot = launch.cannot or "command: no program is left of it"
    if launch.cannot:
        return launch
    _SPECIAL.get(posixpath.basename(launch.words[0]), _package)(launch)
    return launch


def _windows(launch: Launch) -> None:
    if not launch.words:
        return
    program = launch.words[0]
    if _ENDING.sub("", posixpath.basename(program)).lower() == "cmd":
        rest = launch.words[1:]
        while rest and rest[0].lower() in {"/c", "/s", "/d"}:
            rest = rest[1:]
        launch.words = rest
        launch.notes.append("cmd /c is left out, which only Windows needs")
    if launch.words and (plain := _ENDING.sub("", launch.words[0])) != launch.words[0]:
        launch.words[0] = plain
    if launch.words and _WINDOWS.match(program):
        launch.cannot = "command: its program is a path of Windows"


def _env(launch: Launch) -> None:
    """`env A=b program`, as env(1) takes it."""
    if not launch.words or posixpath.basename(launch.words[0]) != "env":
        return
    rest = launch.words[1:]
    if rest[:1] == ["-S"] and len(rest) > 1:
        rest = [*shlex.split(rest[1]), *rest[2:]]
    while rest and (match := _ASSIGNMENT.fullmatch(rest[0])):
        launch.env[match[1]] = match[2]
        rest = rest[1:]
    if rest[:1] and rest[0].startswith("-"):
        launch.cannot = f"command: env {rest[0]} is not understood; allowed is env NAME=VALUE …"
    launch.words = rest


# Programs that run a package as npx or uvx do.
_RUNNERS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("bunx",), ("npx", "-y")),
    (("bun", "x"), ("npx", "-y")),
    (("pnpx",), ("npx", "-y")),
    (("pnpm", "dlx"), ("npx", "-y")),
    (("yarn", "dlx"), ("npx", "-y")),
    (("npm", "exec"), ("npx", "-y")),
    (("npm", "x"), ("npx", "-y")),
    (("pipx", "run"), ("uvx",)),
    (("uv", "tool", "run"), ("uvx",)),
    (("uv", "x"), ("uvx",)),
)


def _runner(launch: Launch) -> None:
    if not launch.words:
        return
    words = [posixpath.basename(launch.words[0]), *launch.words[1:]]
    for theirs, ours in _RUNNERS:
        if tuple(words[: len(theirs)]) == theirs:
            rest = [word for word in words[len(theirs) :] if word not in {"--bun", "-q", "--quiet"}]
            while rest[:1] and rest[0] in {"-y", "--yes", "--"}:
                rest = rest[1:]
            launch.words = [*ours, *rest]
            launch.notes.append(f"{' '.join(theirs)} is {ours[0]} here: the same packages")
            return
    if words[0] in {"npx", "uvx"}:
        launch.words[0] = words[0]
        head = len(launch.words) - len(_after_quiet(launch.words))
        launch.words = [words[0], *launch.words[head:]]


def _after_quiet(words: list[str]) -> list[str]:
    """What follows npx or uvx without options that only say how much is told."""
    rest = words[1:]
    while rest[:1] and rest[0] in {"-q", "--quiet", "--silent", "--no-progress"}:
        rest = rest[1:]
    return rest


def _package(launch: Launch) -> None:
    words = launch.words
    if words[0] not in {"npx", "uvx"}:
        return
    if words[0] == "npx" and any(_REMOTE.fullmatch(word) for word in words[1:3]):
        _remote(launch)
        return
    try:
        parse_command(words)
    except ValueError:
        launch.profile = words[0]
        launch.notes.append(
            f"its package cannot be installed ahead: with the profile {words[0]} each start asks "
            "the registry, and the sandbox is weaker"
        )


def _remote(launch: Launch) -> None:
    """`npx mcp-remote URL --header …`: what it does, an upstream here does itself."""
    rest = launch.words
    at = next(i for i, word in enumerate(rest) if _REMOTE.fullmatch(word)) + 1
    dropped: list[str] = []
    while at < len(rest):
        word, following = rest[at], rest[at + 1] if at + 1 < len(rest) else ""
        name, equals, value = word.partition("=")
        if name == "--header":
            launch.headers.append(value if equals else following)
            at += 1 if equals else 2
        elif name == "--transport":
            if "sse-only" in (value, following):
                launch.cannot = SSE
            at += 1 if equals else 2
        elif launch.url is None and not word.startswith("-"):
            launch.url = word
            at += 1
        else:
            dropped.append(name if name.startswith("--") else "a further word")
            at += 1
    launch.words = []
    launch.notes.append("mcp-remote is left out: the proxy speaks to the URL itself")
    if dropped:
        launch.notes.append(f"of its words these are left out: {', '.join(dropped)}")
    if launch.url is None and not launch.cannot:
        launch.cannot = "command: mcp-remote has no URL"


def _container(launch: Launch) -> None:
    words = launch.words
    cannot = _CONTAINER
    if words[1:2] == ["run"]:
        at, mounts = 2, False
        while at < len(words) and words[at].startswith("-"):
            name, equals, value = words[at].partition("=")
            valued = name in _VALUED and not equals
            given = words[at + 1] if valued and at + 1 < len(words) else value
            if name in {"-e", "--env"}:
                match = _ASSIGNMENT.fullmatch(given)
                if match:
                    launch.env[match[1]] = match[2]
                else:
                    launch.passed.append(given)
            elif name not in _IDLE:
                mounts = True
            at += 2 if valued else 1
        image = words[at].removeprefix("docker.io/").partition("@")[0] if at < len(words) else ""
        packaged = IMAGES.get(image.partition(":")[0])
        if packaged and not mounts:
            launch.words = [*packaged, *words[at + 1 :]]
            launch.notes.append(f"the image {image} is {packaged[-1]} here: the same server")
            return
        # An image's name is no secret, but a word in its place might be.
        cannot = cannot.format(image=image if re.fullmatch(r"[\w./:-]{1,120}", image) else "IMAGE")
    launch.cannot = cannot.format(image="IMAGE")


_CONTAINER = (
    "it runs a container, and whoever may do that commands the host: no server here can. If the "
    "server is a package of npm or PyPI, add that; else unpack {image} and name it as "
    "root.directory (docs/OPERATE.md), or make an image of your own with make sandbox-image"
)
SSE = (
    "it is reached by SSE alone, which MCP has given up (2024-11-05); ask whoever runs it for an "
    "address of streamable HTTP, often the same with /mcp in the place of /sse"
)
_SPECIAL: dict[str, Callable[[Launch], None]] = dict.fromkeys(
    ("docker", "podman", "nerdctl"), _container
)
