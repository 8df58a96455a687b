"""The real proxy, started by its real command line in directories of its own."""

import asyncio
import copy
import hashlib
import json
import os
import re
import secrets
import shutil
import signal
import ssl
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from support import proc
from support.client import Modern, Session
from support.fakes import PLACE, SERVERS, instance_of, path_of
from support.waiting import PATIENCE, eventually
from support.wire import Connection, Response, exchange

START_WITHIN = 60.0  # seconds until the proxy listens
STOP_WITHIN = 30.0 * PATIENCE  # seconds from SIGTERM to its exit
# Words in the proxy's log that no test may cause.
FAULTS = ("Traceback (most recent", "was never retrieved", "was never awaited", "ResourceWarning")
_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'([a-zA-Z_]+)="((?:[^"\\]|\\.)*)"')
DEFAULTS: dict[str, Any] = {
    "listen": {"port": 0},
    "operator": {"port": 0},
    "log": {"access": "all"},
}


def around(fault: str, log: str) -> str:
    """The part of the log that explains a fault in it: its tail may be long after."""
    at = log.index(fault)
    return f"{fault}:\n{log[max(0, at - 2000) : at + 6000]}"


def new_token() -> str:
    return "mcpb_" + secrets.token_urlsafe(32)


class Bridge:
    """`async with Bridge([echo("files")]) as bridge`: a proxy that is stopped at the end.

    At the end it asserts a clean exit, no process left behind, no traceback and no token in the log.

    Args:
        servers: entries of servers.json; tests/support/fakes.py makes them. Each gets a token.
        host: tables of host.toml beyond ports 0, merged over them.
        env: more environment variables for the proxy.
        faults: words that the log may hold although they usually betray a fault.
        python: runs the proxy, and its servers with url.
        manifests: those of manifests.d, each in a file named by its agent type.
    """

    def __init__(
        self,
        servers: Iterable[dict[str, Any]] = (),
        *,
        host: dict[str, dict[str, Any]] | None = None,
        env: dict[str, str] | None = None,
        faults: tuple[str, ...] = (),
        python: str = sys.executable,
        manifests: Iterable[dict[str, Any]] = (),
    ) -> None:
        self._manifests = tuple(manifests)
        self.servers = [copy.deepcopy(server) for server in servers]
        self.host = {**DEFAULTS, **(host or {})}
        for table, values in DEFAULTS.items():
            self.host[table] = {**values, **self.host[table]}
        self._env = env or {}
        self._allowed_faults = faults
        self._python = python
        self._tokens: dict[str, str] = {}
        self.trusts: ssl.SSLContext | None = None  # of clients, where it serves https
        self.root = Path()
        self.process: asyncio.subprocess.Process | None = None
        self.base = self.operator = ""

    # Places, under one root that every uid can reach.

    @property
    def config_dir(self) -> Path:
        return self.root / "config"

    @property
    def state_dir(self) -> Path:
        return self.root / "state"

    @property
    def runtime_dir(self) -> Path:
        return self.root / "run"

    @property
    def options(self) -> list[str]:
        """The command line's options that name the places."""
        return [
            f"--config-dir={self.config_dir}",
            f"--state-dir={self.state_dir}",
            f"--runtime-dir={self.runtime_dir}",
        ]

    # Life

    async def __aenter__(self) -> Self:
        self._make_root()
        try:
            await self.start()
        except BaseException:
            await self._kill()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            print(f"--- the proxy's log\n{self.log()[-6000:]}", file=sys.stderr)
            await self._kill()
            shutil.rmtree(self.root)
            return
        try:
            await self.stop()
            self.assert_clean()
        finally:
            await self._kill()
            shutil.rmtree(self.root)

    def _make_root(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="mcp-bridge-test-"))
        self.root.chmod(0o711)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(SERVERS, self.root / "servers", ignore=ignored)
        for path in (self.root / "servers", *(self.root / "servers").rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        self.config_dir.mkdir(mode=0o755)
        host = "".join(f"[{name}]\n{_toml(table)}\n" for name, table in self.host.items())
        (self.config_dir / "host.toml").write_text(host, encoding="utf-8")
        self.write(self.servers)
        for manifest in self._manifests:
            self.write_manifest(f"{manifest['agent_type']}.yml", manifest)

    def write_manifest(self, name: str, manifest: dict[str, Any] | str) -> None:
        """Put a file into manifests.d; JSON is YAML, too."""
        directory = self.config_dir / "manifests.d"
        directory.mkdir(mode=0o755, exist_ok=True)
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)
        (directory / name).write_text(text, encoding="utf-8")

    async def start(self) -> None:
        """Start the proxy and wait until it listens; again after stop() or kill()."""
        endpoint = self.runtime_dir / "endpoint.json"
        endpoint.unlink(missing_ok=True)
        with (self.root / "log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *(self._python, "-m", "autobot_mcp_bridge.cli.main", "serve", *self.options),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment(),
                start_new_session=True,
            )
        running = self.process

        def listening() -> dict[str, Any] | None:
            assert running.returncode is None, f"the proxy ended at once:\n{self.log()}"
            with suppress(FileNotFoundError, ValueError):
                found: dict[str, Any] = json.loads(endpoint.read_text(encoding="utf-8"))
                return found if found["pid"] == running.pid else None
            return None

        try:
            found = await eventually(listening, within=START_WITHIN, what="endpoint.json")
        except AssertionError as fault:
            raise AssertionError(f"{fault}\n{self.log()[-4000:]}") from fault
        self.base, self.operator = found["url"].rstrip("/"), found["operator_url"].rstrip("/")

    def _environment(self) -> dict[str, str]:
        passed = {k: v for k, v in os.environ.items() if k.startswith("MCP_BRIDGE_TEST_")}
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "LANG": "C.UTF-8",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "PYTHONWARNINGS": "always::ResourceWarning",
            **passed,
            **self._env,
        }

    async def stop(self) -> int:
        """SIGTERM, and the exit status."""
        assert self.process is not None
        with suppress(ProcessLookupError):
            self.process.terminate()
        async with asyncio.timeout(STOP_WITHIN):
            return await self.process.wait()

    async def _kill(self) -> None:
        """Leave nothing running, whatever state a failed test is in."""
        if self.process is not None and self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def assert_clean(self) -> None:
        """After stop(): exit 0, nothing left, no fault and no token in the log."""
        assert self.process is not None
        log = self.log()
        assert self.process.returncode == 0, f"exit {self.process.returncode}:\n{log[-4000:]}"
        assert not self.processes(), f"left behind: {self.processes()}"
        for fault in FAULTS:
            assert fault in self._allowed_faults or fault not in log, around(fault, log)
        for token in self._tokens.values():
            assert token not in log, "a token stands in the log"

    # Configuration

    def write(self, servers: Iterable[dict[str, Any]], **more: Any) -> None:
        """Replace servers.json at once; every entry gets the sha256 of its token."""
        self.servers = [copy.deepcopy(server) for server in servers]
        entries = []
        for server in self.servers:
            token = self._tokens.setdefault(instance_of(server), new_token())
            digests = [hashlib.sha256(token.encode()).hexdigest(), *server.get("tokens_sha256", ())]
            entry = {**server, "tokens_sha256": digests}
            if "command" in server:
                entry["command"] = [
                    word.replace(PLACE, f"{self.root}/servers") for word in server["command"]
                ]
            entries.append(entry)
        self.write_text(json.dumps({"version": 1, "servers": entries, **more}, indent=1))

    def write_text(self, text: str) -> None:
        path = self.config_dir / "servers.json"
        fresh = path.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.chmod(0o644)
        fresh.rename(path)

    def forget_token(self, instance: str) -> None:
        """The next `write` gives the server another token: the one it has is revoked then."""
        self._tokens[instance] = new_token()

    async def more_token(self, instance: str) -> str:
        """Give the server one more token, which counts when this returns."""
        token = new_token()
        entry = next(server for server in self.servers if instance_of(server) == instance)
        entry.setdefault("tokens_sha256", []).append(hashlib.sha256(token.encode()).hexdigest())
        self.write(self.servers)
        await self.reload()
        return token

    async def reload(self) -> Response:
        """POST /reload: the files are in force when it answers."""
        return await self.control("POST", "/reload")

    # Endpoints

    def path(self, instance: str) -> str:
        return path_of(next(s for s in self.servers if instance_of(s) == instance))

    def url(self, instance: str) -> str:
        return self.base + self.path(instance)

    def token(self, instance: str) -> str:
        return self._tokens[instance]

    def session(self, instance: str, *, token: str = "", **options: Any) -> Session:
        client = Session(self.url(instance), token or self.token(instance), **options)
        client.tls = self.trusts
        return client

    def modern(self, instance: str, **options: Any) -> Modern:
        client = Modern(self.url(instance), self.token(instance), **options)
        client.tls = self.trusts
        return client

    # What an operator sees

    async def control(self, method: str, target: str) -> Response:
        connection = await Connection.open_unix(str(self.runtime_dir / "control.sock"))
        try:
            body = b"" if method == "POST" else None
            return await connection.request(method, target, {"Host": "control"}, body)
        finally:
            await connection.close()

    async def command(self, instance: str, verb: str) -> Response:
        """start, stop or reset."""
        return await self.control("POST", f"/servers/{quote(instance)}/{verb}")

    async def status(self) -> dict[str, Any]:
        response = await self.control("GET", "/status")
        assert response.status == 200, response
        found: dict[str, Any] = json.loads(response.body)
        return found

    async def server(self, instance: str) -> dict[str, Any]:
        """The instance's row of /status."""
        rows = (await self.status())["servers"]
        found: dict[str, Any] = next(row for row in rows if row["instance"] == instance)
        return found

    async def state(self, instance: str) -> str:
        return str((await self.server(instance))["state"])

    async def in_state(self, instance: str, *states: str, within: float = 5.0) -> dict[str, Any]:
        """Wait for one of these states and return the row."""

        async def row() -> dict[str, Any] | None:
            found = await self.server(instance)
            return found if found["state"] in states else None

        found = await eventually(row, within=within, what=f"{instance} in {states}")
        assert found is not None
        return found

    async def server_pid(self, instance: str) -> int:
        pid = (await self.server(instance))["pid"]
        assert isinstance(pid, int), f"{instance} has no process"
        return pid

    async def metrics(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        response = await exchange(f"{self.operator}/metrics")
        assert response.status == 200, response
        found = {}
        for line in response.body.decode().splitlines():
            if match := _SAMPLE.match(line):
                labels = frozenset(_LABEL.findall(match[2] or ""))
                found[match[1], labels] = float(match[3])
        return found

    async def metric(self, name: str, **labels: str) -> float:
        """The sum over all samples of this name that have these labels; 0 if there is none."""
        wanted = set(labels.items())
        samples = await self.metrics()
        return sum(v for (found, have), v in samples.items() if found == name and wanted <= have)

    async def health(self, *, operator: bool = False) -> Response:
        return await exchange(f"{self.operator if operator else self.base}/healthz")

    # What /proc tells

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def processes(self) -> list[int]:
        """Everything that runs with this bridge's state directory in its environment."""
        found = proc.with_environment(f"{self.state_dir}/")
        return [pid for pid in found if self.process is None or pid != self.process.pid]

    def log(self) -> str:
        path = self.root / "log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _toml(table: dict[str, Any]) -> str:
    # JSON's scalars and arrays of scalars are TOML's too.
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
