"""The project's unit files in a machine of the lab, and instances made from definitions."""

import shlex
import socket
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units import render
from autobot_mcp_bridge.units.host import static
from autobot_mcp_bridge.units.sandbox.confinement import Facts
from lab.containers import Container
from lab.machine import Machine
from rules.tree import ROOT
from support.handed import Handed, connect, take
from support.waiting import WITHIN

SERVERS = "/opt/mcp-servers"  # where the fakes of tests/servers lie inside
_UNITS = "/etc/systemd/system"


def install(container: Machine) -> None:
    """Lay the static files as an installation does, and make the user and the directories."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for source, place in static.FILES.items():
            _write(root / place, (ROOT / "templates" / source).read_text(encoding="utf-8"))
        for link, target in static.ALIASES.items():
            (root / link).symlink_to(target)
        # Not the root itself: its mode would become that of the container's.
        container.copy(root / "usr", "/usr")
    container.copy(ROOT / "tests" / "servers", SERVERS)
    container.check("systemd-sysusers")
    container.check("systemd-tmpfiles", "--create", "--prefix=/run/mcp-bridge")
    container.check("systemctl", "daemon-reload")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    for made in (path.parent, *path.parent.parents):
        if made.name in {"usr", "lib", "systemd", "system", "mcp-bridge"}:
            made.chmod(0o755)
    path.chmod(0o644)


class Instance:
    """One server's units, in a container."""

    def __init__(self, container: Container, spec: ServerSpec) -> None:
        self.container = container
        self.name = spec.instance
        self.service = f"autobot-mcp-bridge@{spec.instance}.service"
        self.socket = f"autobot-mcp-bridge@{spec.instance}.socket"

    def path(self, inside: str) -> Path:
        """Where a path of the container is, seen from here."""
        return Path(f"/proc/{self.container.state().leader}/root{inside}")

    def connect(self) -> socket.socket:
        return connect(self.path(f"/run/mcp-bridge/{self.name}.sock"))

    def start(self) -> Handed:
        """Start the server as the proxy does: by connecting.

        Raises:
            EOFError: the connection ended without a hello.
        """
        return take(self.connect())

    def told(self, *, within: float = WITHIN) -> str:
        """Start the server and return what it writes until its stdout ends.

        Raises:
            AssertionError: its launcher told of an error, or there was no end.
        """
        with self.start() as handed:
            assert handed.rest() == b""
            return handed.read(within=within).decode()

    @contextmanager
    def held(self) -> Iterator[None]:
        """The server runs."""
        with self.start() as handed:
            assert handed.rest() == b""
            yield


def spec_of(name: str, *command: str, **keys: object) -> ServerSpec:
    return ServerSpec.model_validate({"name": name, "command": command or ("/bin/cat",), **keys})


@contextmanager
def instances(
    container: Machine,
    specs: Iterable[ServerSpec],
    extra: str = "",
    facts: Facts | None = None,
    kind: type[Instance] = Instance,
) -> Iterator[list[Instance]]:
    """Instances whose sockets listen; at the end nothing of them is left.

    `extra` becomes an administrator's drop-in of each; `facts` are those of their host.
    """
    made = [kind(container, spec) for spec in specs]
    folders = [f"{_UNITS}/{one.service}.d" for one in made]
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        for spec, one in zip(specs, made, strict=True):
            folder = root / f"{one.service}.d"
            text = render.drop_in(spec, Command(spec.command), facts)
            _write(folder / render.DROP_IN, text)
            _write(folder / "90-test.conf", extra)
            folder.chmod(0o755)
        container.copy(root, _UNITS)
    container.check("systemctl", "daemon-reload")
    sockets = [one.socket for one in made]
    try:
        container.check("systemctl", "start", *sockets)
        yield made
    finally:
        words = ["systemctl stop --", *map(shlex.quote, sockets)]
        words += [";", "systemctl reset-failed --", *(shlex.quote(one.service) for one in made)]
        words += map(shlex.quote, sockets)
        words += [";", "rm -rf --", *map(shlex.quote, folders)]
        container.run("sh", "-c", " ".join(words), timeout=6 * WITHIN)


@contextmanager
def instance(
    container: Machine, spec: ServerSpec, extra: str = "", kind: type[Instance] = Instance
) -> Iterator[Instance]:
    with instances(container, [spec], extra, kind=kind) as (one,):
        yield one
