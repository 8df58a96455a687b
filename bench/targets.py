"""What is measured: each gateway started in front of the same stdio servers, and stopped by pid."""

import asyncio
import hashlib
import json
import os
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import procstat
from loadgen import Client, Endpoint, WrongAnswerError, text_of

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
HOME = Path(os.environ.get("MCP_BRIDGE_BENCH_HOME") or CACHE / "mcp-bridge-bench")
HOSTED = "echo_server.py"
# As root the bridge runs servers as another user, who may not reach this interpreter.
SYSTEM_PYTHON = "/usr/bin/python3"
READY = 180  # seconds, from a gateway's start to its first answer
ONE_TRY = 20  # seconds, of one attempt to be answered
BETWEEN_TRIES = 0.02  # seconds
STOP = 10  # seconds, from SIGTERM to SIGKILL
STOP_POLL = 0.02  # seconds


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Gateway:
    """One gateway, one process or several, with its endpoints: one a hosted server."""

    def __init__(self, name, servers=1, prefix=()):
        self.name, self.servers, self.prefix = name, servers, list(prefix)
        self.processes, self.endpoints = [], []
        self.folder = Path(tempfile.mkdtemp(prefix="mcp-bridge-bench-"))
        self.folder.chmod(0o755)  # a server that runs as another user reads its script here
        script = shutil.copy(HERE / HOSTED, self.folder)
        python = SYSTEM_PYTHON if Path(SYSTEM_PYTHON).exists() else sys.executable
        self.command = [python, str(script)]
        self.log = self.folder / "log"
        self.began = time.perf_counter()

    def spawn(self, *argv, **environment):
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [str(word) for word in argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | environment,
                cwd=self.folder,
            )
        self.processes.append(process)

    def add(self, url, **more):
        self.endpoints.append(Endpoint(url, **more))

    @property
    def roots(self):
        return [process.pid for process in self.processes]

    def meter(self):
        return procstat.CpuMeter(self.roots, HOSTED)

    def memory(self):
        return procstat.memory(self.roots, HOSTED)

    def server_pids(self):
        return procstat.split(self.roots, HOSTED)[1]

    def dead(self):
        return [process.returncode for process in self.processes if process.poll() is not None]

    def failure(self, why):
        tail = self.log.read_text(errors="replace")[-1500:] if self.log.exists() else ""
        return RuntimeError(f"{self.name}: {why}\n{tail}")

    async def until(self, attempt, what):
        """Repeat `attempt` until it raises nothing, and return what it returned."""
        end = time.perf_counter() + READY
        while True:
            try:
                async with asyncio.timeout(ONE_TRY):
                    return await attempt()
            except (WrongAnswerError, OSError, TimeoutError, EOFError, ValueError) as error:
                if self.dead() or time.perf_counter() > end:
                    raise self.failure(f"{what}: {error!r}, exited: {self.dead()}") from error
            await asyncio.sleep(BETWEEN_TRIES)

    async def answered(self, endpoint):
        async def attempt():
            client = Client(endpoint)
            try:
                await client.start()
                await client.call(text_of(64))
                await client.stop()
            finally:
                client.connection.close()

        await self.until(attempt, endpoint.url)

    def stop(self):
        """End every process of the tree by its pid."""
        pids = procstat.tree(self.roots)
        self._signal(self.roots, signal.SIGTERM)
        end = time.monotonic() + STOP
        while len(self.dead()) < len(self.processes) and time.monotonic() < end:
            time.sleep(STOP_POLL)
        left = set(procstat.tree(self.roots))
        left |= {pid for pid in pids if pid in procstat.split([pid], HOSTED)[1]}
        self._signal(left, signal.SIGKILL)
        for process in self.processes:
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def _signal(pids, number):
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue


def limit(gateway, *arguments):
    gateway.spawn(sys.executable, HERE / "limits.py", *arguments)


async def post(gateway):
    port = free_port()
    limit(gateway, "post", f"tcp:{port}")
    gateway.add(f"http://127.0.0.1:{port}/s/mcp", era="raw")


async def ref(gateway):
    port, path = free_port(), gateway.folder / "socket"
    limit(gateway, "echo", f"unix:{path}")
    limit(gateway, "proxy", f"tcp:{port}", path)
    gateway.add(f"http://127.0.0.1:{port}/s/mcp", era="raw")


async def ours(gateway):
    """This project's proxy: its real command, a token, the subprocess runtime, ports of its own.

    Each hosted server has two endpoints: all in the handshake era first, then all in the modern.
    """
    token = "mcpb_" + secrets.token_urlsafe(32)
    names = [f"echo{number}" for number in range(gateway.servers)]
    digest = hashlib.sha256(token.encode()).hexdigest()
    servers = [
        {"name": name, "command": gateway.command, "tokens_sha256": [digest]} for name in names
    ]
    config, state, runtime = (gateway.folder / name for name in ("config", "state", "run"))
    config.mkdir()
    (config / "servers.json").write_text(json.dumps({"version": 1, "servers": servers}))
    (config / "host.toml").write_text("[listen]\nport = 0\n\n[operator]\nport = 0\n")
    gateway.spawn(
        sys.executable,
        *gateway.prefix,
        *("-m", "autobot_mcp_bridge.cli.main", "serve"),
        MCP_BRIDGE_CONFIG_DIR=str(config),
        MCP_BRIDGE_STATE_DIR=str(state),
        MCP_BRIDGE_RUNTIME_DIR=str(runtime),
        PYTHONPATH=str(HERE.parent / "supervisor"),
    )

    async def url():
        return json.loads((runtime / "endpoint.json").read_bytes())["url"]

    base = await gateway.until(url, "endpoint.json")
    for era in ("handshake", "modern"):
        for name in names:
            authorization = {"Authorization": f"Bearer {token}"}
            gateway.add(f"{base}/t/default/s/{name}/mcp", era=era, headers=authorization)


def npm_program(folder, *path):
    return HOME / "npm" / folder / "node_modules" / Path(*path)


async def supergateway(gateway):
    program = npm_program("supergateway", "supergateway", "dist", "index.js")
    for _ in range(gateway.servers):
        port = free_port()
        stdio = ("--stdio", shlex.join(gateway.command), "--outputTransport", "streamableHttp")
        gateway.spawn("node", program, *stdio, "--stateful", "--port", port, "--logLevel", "none")
        gateway.add(f"http://127.0.0.1:{port}/mcp")


async def mcp_proxy_py(gateway):
    port, named = free_port(), []
    for number in range(gateway.servers):
        named += ["--named-server", f"s{number}", shlex.join(gateway.command)]
        gateway.add(f"http://127.0.0.1:{port}/servers/s{number}/mcp/")
    program = HOME / "venv/mcp-proxy/bin/mcp-proxy"
    gateway.spawn(program, "--port", port, "--log-level", "WARNING", *named)


async def mcp_proxy_npm(gateway):
    program = npm_program("mcp-proxy", ".bin", "mcp-proxy")
    for _ in range(gateway.servers):
        port = free_port()
        where = ("--host", "127.0.0.1", "--port", port, "--server", "stream")
        gateway.spawn("node", program, *where, "--", *gateway.command)
        gateway.add(f"http://127.0.0.1:{port}/mcp")


async def fastmcp(gateway):
    port, config = free_port(), gateway.folder / "mcp.json"
    names = [f"s{number}" for number in range(gateway.servers)]
    command, *words = gateway.command
    config.write_text(
        json.dumps({"mcpServers": {name: {"command": command, "args": words} for name in names}})
    )
    program, where = HOME / "venv/fastmcp/bin/fastmcp", ("--transport", "http", "--port", port)
    gateway.spawn(program, "run", config, *where, "--log-level", "WARNING", "--no-banner")
    for name in names:
        tool = "echo" if gateway.servers == 1 else f"{name}_echo"
        gateway.add(f"http://127.0.0.1:{port}/mcp", tool=tool)


LIMITS = {"post": post, "ref": ref}
OURS = {"ours": ours}
PEERS = {
    "supergateway": supergateway,
    "mcp-proxy-py": mcp_proxy_py,
    "mcp-proxy-npm": mcp_proxy_npm,
    "fastmcp": fastmcp,
}
ALL = LIMITS | OURS | PEERS


def install(name):
    """Install a peer where it is missing; its version stands in setup-peers."""
    subprocess.run([HERE / "setup-peers", name], check=True, stdout=sys.stderr)


async def start(name, servers=1, prefix=()):
    """The gateway, started, every endpoint of it answering.

    Raises:
        RuntimeError: it did not answer in time, or exited; with the end of its log.
    """
    if name in PEERS:
        await asyncio.to_thread(install, name)
    gateway = Gateway(name, servers, prefix)
    try:
        await ALL[name](gateway)
        for endpoint in gateway.endpoints:
            await gateway.answered(endpoint)
    except BaseException:
        gateway.stop()
        raise
    return gateway
