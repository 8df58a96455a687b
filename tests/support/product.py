"""The installed product in a container of the lab: units, proxy, apply, all of it.

What pip downloads is installed once per suite and kept as a layer of the lab, by the list of
dependencies; the code that is being tested is laid over it each time, which takes a second or two.
"""

import asyncio
import ctypes
import hashlib
import json
import os
import shutil
import socket
import tempfile
import threading
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from lab import labs
from lab.containers import Container
from lab.layers import MAKE_TIMEOUT, layer
from lab.places import Lab
from lab.spec import Bind
from rules.tree import PACKAGE, ROOT
from support import proc
from support.client import Client, Modern, Session
from support.containers import entries, properties
from support.installed import SERVERS
from support.waiting import WITHIN, eventually
from support.wire import Connection

URL = "http://127.0.0.1:8765"
OPERATOR_URL = "http://127.0.0.1:8766"
PROXY = "mcp-bridge-proxy.service"
CHECKOUT = "/opt/checkout"  # where a container that installs sees it
APPLY_WITHIN = 4 * WITHIN
C = TypeVar("C", bound=Client)
_CLONE_NEWNET = 0x40000000  # setns(2)
_MAKE = (
    "import os; from pathlib import Path; from autobot_mcp_bridge.units.host.program import Program; "
    "Program(Path('/'), print).ensure(os.environ)"
)
_PYTHON = (
    "env",
    "PYTHONDONTWRITEBYTECODE=1",
    f"PYTHONPATH={CHECKOUT}/supervisor",
    "/usr/bin/python3",
)


def program_layer(lab: Lab, suite: str) -> str:
    """Return the suite's layer that holds the program's venv, with some version of its code."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (PACKAGE / "units" / "host" / "program.py").read_text(encoding="utf-8")
    key = [project["dependencies"], project["optional-dependencies"], recipe]

    def make(container: Container) -> None:
        container.check(*_PYTHON, "-c", _MAKE, timeout=MAKE_TIMEOUT)

    return layer(lab, suite, "program", key, make, checkout_binds())


def checkout_binds() -> tuple[Bind, ...]:
    return (Bind(str(ROOT), CHECKOUT),)


def lay_code(container: Container) -> None:
    """Put the checkout's code in the place of the layer's, as pip would."""
    (site,) = container.check(
        "sh", "-c", "echo /usr/lib/mcp-bridge/venv-*/lib/python3*/site-packages"
    ).split()
    ignore = shutil.ignore_patterns("__pycache__", "mcp-bridge@.*")
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / PACKAGE.name
        shutil.copytree(PACKAGE, copy, ignore=ignore)  # follows the link to the templates
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        container.check("rm", "-rf", f"{site}/{PACKAGE.name}")
        container.copy(copy, f"{site}/{PACKAGE.name}")
    python = "/usr/lib/mcp-bridge/venv/bin/python"
    container.check(python, "-m", "compileall", "-q", f"{site}/{PACKAGE.name}", timeout=60.0)


class Product:
    """One installation, with small verbs; whatever a test changes it changes back or overwrites."""

    def __init__(self, container: Container) -> None:
        self.container = container

    def install(self) -> str:
        """Install from the code that is laid; what it prints."""
        program = "/usr/lib/mcp-bridge/venv/bin/mcp-bridge"
        return self.container.check(program, "install", timeout=60.0)

    def cli(self, *words: str) -> str:
        return self.container.check("mcp-bridge", *words)

    def write_servers(self, *servers: dict[str, Any], **more: Any) -> None:
        """Replace servers.json, as a manager does: nothing else is told."""
        document = {"version": 1, "servers": servers, **more}
        self.write("/etc/mcp-bridge/servers.json", json.dumps(document, indent=1))

    def write(self, path: str, text: str) -> None:
        """Replace a file at once."""
        script = f'cat > "{path}.new" && chmod 644 "{path}.new" && mv "{path}.new" "{path}"'
        self.container.check("sh", "-c", script, stdin=text)

    def accepted(self) -> dict[str, dict[str, Any]]:
        """What is in force: instance to its entry in accepted.json."""
        text = self.container.check("cat", "/var/lib/mcp-bridge/accepted.json")
        servers = json.loads(text)["servers"] if text else ()
        return {instance_of(server["spec"]): server for server in servers}

    async def applied(
        self, *instances: str, state: str | None = None, within: float = APPLY_WITHIN
    ) -> None:
        """Wait until exactly these servers are in force, each in this state, and the proxy has them.

        Raises:
            AssertionError: they were not all the time.
        """

        async def is_so() -> object:
            found = await asyncio.to_thread(self.accepted)
            states = {name: server["state"] for name, server in found.items()}
            if states != dict.fromkeys(instances, state):
                return False
            listed = json.loads(await asyncio.to_thread(self.cli, "list", "--json"))
            served = {row["name"] for row in listed["servers"] if row["state"] != "pending"}
            return served == set(instances)

        await eventually(is_so, within=within, what=f"{instances} are in force")

    async def serve(self, *servers: dict[str, Any], **more: Any) -> None:
        """Write servers.json and wait until all of it is in force."""
        self.write_servers(*servers, **more)
        await self.applied(*map(instance_of, servers))

    def pass_to_installs(self, variables: Mapping[str, str]) -> None:
        """Hand these, and no others, to the installers of packages."""
        lines = [f"{name}={json.dumps(text)}" for name, text in variables.items()]
        self.write("/etc/mcp-bridge/environment", "\n".join(lines) + "\n")
        self.write(
            "/etc/mcp-bridge/host.toml", f"[environment]\npass = {json.dumps([*variables])}\n"
        )

    def token(self, name: str) -> str:
        """Make one more token, which counts from now on."""
        return self.cli("token", "new", name).strip()

    def dial(self, kind: int = socket.SOCK_STREAM) -> socket.socket:
        """A socket of the container's network: its loopback is not ours."""
        return socket_in(Path(f"/proc/{self._leader}/ns/net"), kind)

    @property
    def _leader(self) -> int:
        """The container's first process, another one after each boot."""
        state = self.container.state()
        assert state is not None, f"{self.container} is not up"
        return state.leader

    def listener(self, address: str = "127.0.0.1") -> socket.socket:
        """A socket that listens on a free port of the container's."""
        made = self.dial()
        made.setblocking(True)
        made.bind((address, 0))
        made.listen(32)
        return made

    def session(self, name: str, token: str | None = None, **options: Any) -> Session:
        """A client of the handshake era: `async with product.session("files") as client`."""
        return self._dialled(Session(url_of(name), token or self.token(name), **options))

    def modern(self, name: str, token: str | None = None, **options: Any) -> Modern:
        return self._dialled(Modern(url_of(name), token or self.token(name), **options))

    def _dialled(self, client: C) -> C:
        client.dial = self.dial
        return client

    async def get(self, target: str) -> str:
        """A page of the operator's listener."""
        client = self._dialled(Client(f"{OPERATOR_URL}{target}", None))
        async with client:
            response = await client.send(method="GET")
        assert response.status == 200, response
        return response.body.decode()

    async def status(self) -> dict[str, Any]:
        """GET /status of the control socket, which is reached through any mount namespace."""
        path = f"/proc/{self._leader}/root/run/mcp-bridge/control.sock"
        connection = await Connection.open_unix(path)
        try:
            response = await connection.request("GET", "/status", {"Host": "control"})
        finally:
            await connection.close()
        assert response.status == 200, response
        found: dict[str, Any] = json.loads(response.body)
        return found

    @property
    def pid(self) -> int:
        """The proxy's main process, in the number that it has here, outside."""
        return proc.outside(
            self._leader, int(properties(self.container, PROXY, "MainPID")["MainPID"])
        )

    async def metrics(self) -> str:
        return await self.get("/metrics")

    async def samples(self, **labels: str) -> dict[str, float]:
        """Each metric's value in its sample that has these labels."""
        found = {}
        for line in (await self.metrics()).splitlines():
            name, _, rest = line.partition("{")
            told, _, value = rest.partition("} ")
            if value and all(f'{key}="{text}"' in told for key, text in labels.items()):
                found[name] = float(value)
        return found

    def entries(self, *matches: str) -> list[dict[str, Any]]:
        """The entries of the journal that match."""
        return entries(self.container, *matches)

    def logs(self, *matches: str) -> list[str]:
        """The messages of the journal that match: `-t mcp-bridge-proxy`, `MCP_INSTANCE=files`."""
        return [str(entry.get("MESSAGE", "")) for entry in entries(self.container, *matches)]


def echo(name: str, **keys: Any) -> dict[str, Any]:
    """A definition of the fake server, which needs no package."""
    return {"name": name, "command": ["/usr/bin/python3", f"{SERVERS}/echo.py"], **keys}


def digest_of(token: str) -> str:
    """What stands in `tokens_sha256` for a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def instance_of(server: dict[str, Any]) -> str:
    tenant, project = server.get("tenant", "default"), server.get("project")
    parts = (tenant, project) if project else () if tenant == "default" else (tenant,)
    return ".".join((*parts, server["name"]))


def url_of(name: str) -> str:
    from autobot_mcp_bridge.model.names import parse_instance

    return f"{URL}{parse_instance(name).path}"


def socket_in(namespace: Path, kind: int = socket.SOCK_STREAM) -> socket.socket:
    """A socket of a network namespace."""
    made: list[socket.socket] = []
    libc = ctypes.CDLL(None, use_errno=True)

    def make() -> None:
        descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if libc.setns(descriptor, _CLONE_NEWNET) == 0:
                made.append(socket.socket(socket.AF_INET, kind))
                made[0].setblocking(False)
        finally:
            os.close(descriptor)

    # A thread of its own takes the namespace with it when it ends.
    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    assert made, f"{namespace} cannot be entered"
    return made[0]


def installed_product(
    lab: Lab,
    suite: str,
    name: str,
    binds: Iterable[Bind] = (),
    *,
    host_network: bool = False,
    layers: Iterable[str] = (),
) -> Product:
    """Boot a container of its own with the product in it, over layers beside the program's."""
    container = labs.up(
        lab,
        name,
        suite,
        layers=[program_layer(lab, suite), *layers],
        binds=binds,
        host_network=host_network,
    )
    product = Product(container)
    lay_code(container)
    container.copy(ROOT / "tests" / "servers", SERVERS)
    product.install()
    return product
