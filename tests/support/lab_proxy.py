"""The proxy as its own unit in a container of the lab, with servers that are units beside it.

A minimal installation: the unit files, this checkout's package, and what it needs in a directory
of the cache that the container sees read-only. accepted.json is written here, as apply writes it.
"""

import asyncio
import ctypes
import hashlib
import os
import socket
import subprocess
import tempfile
import threading
import tomllib
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.config import accepted
from autobot_mcp_bridge.config.accepted import Accepted, AcceptedServer
from autobot_mcp_bridge.model.server import ServerSpec
from lab import labs
from lab.commands import locked
from lab.containers import Container
from lab.places import Lab
from lab.spec import Bind
from rules.tree import PACKAGE, ROOT
from support import installed
from support.client import Client, Session
from support.containers import entries, properties, reaches
from support.waiting import PATIENCE, eventually
from support.wire import _LIMIT, WITHIN, Connection

PORT = 8765
PYTHONS = {"bookworm": "3.11", "trixie": "3.13"}
SERVICE = "mcp-bridge-proxy.service"
STARTED_WITHIN = 20.0
_HOLD = "/run/hold-the-proxy"
_CODE, _SITE = "/opt/mcp-bridge", "/opt/site"
_CLONE_NEWNET = 0x40000000  # setns(2)
_INSTALL_TIMEOUT = 300.0
_DROP_IN = f"""[Service]
ExecStart=
ExecStart=/usr/bin/python3 -m autobot_mcp_bridge.cli.main serve --systemd
Environment=PYTHONPATH={_CODE}:{_SITE} PYTHONWARNINGS=always::ResourceWarning
Environment=MCP_BRIDGE_CONFIG_DIR=/etc/mcp-bridge MCP_BRIDGE_STATE_DIR=/var/lib/mcp-bridge
Environment=MCP_BRIDGE_RUNTIME_DIR=/run/mcp-bridge
# So that a test can look at what there is while no proxy runs.
ExecStartPre=/bin/sh -c 'while test -e {_HOLD}; do sleep 0.05; done'
"""


class LabProxy:
    """`async with` is not needed: `started` waits for it, the fixture stops it."""

    def __init__(self, container: Container) -> None:
        self.container = container
        self._network = Path(f"/proc/{container.state().leader}/ns/net")

    def check(self, *words: str, **keys: Any) -> str:
        return self.container.check(*words, **keys)

    async def run(self, *words: str) -> str:
        """Run a command in the container while the loop goes on."""
        return await asyncio.to_thread(self.container.check, *words)

    async def restart(self) -> None:
        await self.run("systemctl", "restart", SERVICE)

    async def kill(self) -> None:
        """SIGKILL, and wait until the next one serves."""
        old = await asyncio.to_thread(lambda: self.pid)
        await self.run("systemctl", "kill", "--signal=KILL", "--kill-whom=main", SERVICE)

        async def another() -> bool:
            return await asyncio.to_thread(lambda: self.pid) not in (0, old)

        await eventually(another, within=STARTED_WITHIN)
        await reaches(self.container, SERVICE, ActiveState="active", within=STARTED_WITHIN)

    @asynccontextmanager
    async def away(self, signal: str = "KILL") -> AsyncIterator[None]:
        """End it by a signal, and let the next one begin only when the block ends."""
        self.check("touch", _HOLD)
        try:
            await self.run("systemctl", "kill", f"--signal={signal}", "--kill-whom=main", SERVICE)
            await reaches(self.container, SERVICE, SubState="start-pre", within=STARTED_WITHIN)
            yield
        finally:
            self.check("rm", "-f", _HOLD)
        await reaches(self.container, SERVICE, ActiveState="active", within=STARTED_WITHIN)

    @property
    def pid(self) -> int:
        """As the container numbers it; 0 while there is none."""
        return int(properties(self.container, SERVICE, "MainPID")["MainPID"])

    @property
    def stored(self) -> int:
        """Descriptors that systemd holds for it."""
        return int(
            properties(self.container, SERVICE, "NFileDescriptorStore")["NFileDescriptorStore"]
        )

    def descriptors(self) -> int:
        return len(self.check("ls", f"/proc/{self.pid}/fd").split())

    def invocations(self, names: Iterable[str]) -> dict[str, str]:
        """The invocation of each server's unit that is active."""
        found = {}
        for name in names:
            shown = properties(
                self.container, f"autobot-mcp-bridge@{name}.service", "InvocationID", "ActiveState"
            )
            if shown["ActiveState"] == "active":
                found[name] = shown["InvocationID"]
        return found

    def log(self) -> str:
        lines = entries(self.container, f"_SYSTEMD_UNIT={SERVICE}")
        return "\n".join(str(line["MESSAGE"]) for line in lines)

    def dial(self) -> socket.socket:
        """A socket of the container's network, connected."""
        made: list[socket.socket] = []
        libc = ctypes.CDLL(None, use_errno=True)

        def make() -> None:
            descriptor = os.open(self._network, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if libc.setns(descriptor, _CLONE_NEWNET) == 0:
                    made.append(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            finally:
                os.close(descriptor)

        # A namespace is a thread's own, and ends with it.
        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        made[0].settimeout(WITHIN)
        try:
            made[0].connect(("127.0.0.1", PORT))
        except BaseException:
            made[0].close()
            raise
        made[0].setblocking(False)
        return made[0]

    def session(self, name: str, token: str, **options: Any) -> "LabSession":
        return LabSession(self, f"http://127.0.0.1:{PORT}/t/default/s/{name}/mcp", token, **options)

    @contextmanager
    def serving(self, specs: list[ServerSpec]) -> Iterator[list[installed.Instance]]:
        """Have the proxy serve these, and nothing at the end."""
        with installed.instances(self.container, specs) as made:
            self.accept(specs)
            try:
                self.check("systemctl", "restart", "mcp-bridge-proxy.socket", timeout=60)
                self.check("systemctl", "restart", SERVICE, timeout=60)
                yield made
            finally:
                self.accept([])
                self.check(
                    "systemctl",
                    "stop",
                    SERVICE,
                    "mcp-bridge-proxy.socket",
                    "mcp-bridge-control.socket",
                    timeout=60,
                )

    def accept(self, specs: Iterable[ServerSpec]) -> None:
        """Write accepted.json."""
        servers = tuple(map(AcceptedServer, specs))
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "accepted.json"
            accepted.write(path, Accepted(servers=servers, digest=os.urandom(8).hex()))
            place = "/var/lib/mcp-bridge/accepted.json"
            text = path.read_text(encoding="utf-8")
        script = f"cat >{place}.new && chgrp mcp-bridge {place}.new && mv {place}.new {place}"
        self.check("sh", "-c", f"umask 027; {script}", stdin=text)


class LabSession(Session):
    """A session whose connections are made within the container's network.

    A kept connection whose end it has seen is replaced; nothing is ever sent twice.

    Attributes:
        closed: how often that was so.
    """

    def __init__(self, proxy: LabProxy, url: str, token: str, **options: Any) -> None:
        super().__init__(url, token, **options)
        self._proxy = proxy
        self.closed = 0

    async def open_connection(self) -> Connection:
        made = await asyncio.to_thread(self._proxy.dial)
        return Connection(*await asyncio.open_connection(sock=made, limit=_LIMIT))

    async def send(
        self,
        message: Any = None,
        *,
        method: str = "POST",
        headers: dict[str, str | None] | None = None,
        body: bytes | None = None,
        target: str | None = None,
        within: float = WITHIN,
    ) -> Any:
        connection = await self._kept_connection()
        try:
            async with asyncio.timeout(within):
                return await connection.request(
                    method, target or self.target, *self._parts(message, headers, body)
                )
        finally:
            if connection.reusable:
                self._idle.append(connection)
            else:
                await connection.close()

    async def _kept_connection(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.ended:
                return connection
            self.closed += 1
            await connection.close()
        return await self.open_connection()

    async def listen(self) -> Any:
        connection = await self.open_connection()
        parts = self._parts(None, {"Accept": "text/event-stream"}, None)
        return await connection.stream("GET", self.target, *parts)


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def site_of(lab: Lab, suite: str) -> Path:
    """What the package needs, for the suite's Python; made once per list of dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = project["dependencies"]
    version = PYTHONS[suite]
    key = hashlib.sha256("\n".join([version, *needs]).encode()).hexdigest()[:12]
    place = lab.cache / "sites" / key
    place.parent.mkdir(parents=True, exist_ok=True)
    with locked(place.parent / "lock", within=_INSTALL_TIMEOUT):
        if not place.exists():
            fresh = place.with_suffix(".new")
            words = ["uv", "pip", "install", "--quiet", "--target", str(fresh)]
            words += ["--python-version", version, "--only-binary", ":all:", *needs]
            subprocess.run(words, check=True, timeout=_INSTALL_TIMEOUT, stdin=subprocess.DEVNULL)
            fresh.rename(place)
    return place


def lab_proxy(lab: Lab, suite: str, name: str) -> LabProxy:
    """Boot a container with a proxy that does not run yet."""
    site = site_of(lab, suite)
    container = labs.up(lab, name, suite, binds=[Bind(str(site), _SITE)])
    installed.install(container)
    container.copy(PACKAGE, f"{_CODE}/{PACKAGE.name}")
    container.write(f"/etc/systemd/system/{SERVICE}.d/90-lab.conf", _DROP_IN)
    container.check("sh", "-c", f"chmod -R a+rX {_CODE}; systemd-tmpfiles --create")
    container.check("systemctl", "daemon-reload")
    container.check("systemctl", "restart", "polkit", timeout=30 * PATIENCE)
    return LabProxy(container)


__all__ = ["Client", "LabProxy", "LabSession", "digest_of", "lab_proxy"]
