"""The reverse proxies of examples/, as real processes in front of a proxy of ours."""

import asyncio
import os
import signal
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rules.tree import ROOT
from support.authority import Authority
from support.bridge import Bridge
from support.client import Modern, Session
from support.waiting import eventually

NAME = "mcp.example.com"  # as examples/ have it
# Where the front listens, and where clients come from: the bridge sees neither, but 127.0.0.1.
ADDRESS, CLIENT = "127.0.0.2", "127.0.0.3"
STOP_WITHIN = 3.0
# What examples/nginx.conf is included in, by Debian's nginx.conf.
_NGINX = """
daemon off;
user {user};
pid {folder}/pid;
error_log {folder}/log;
worker_processes 1;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/mcp-bridge.conf;
}}
"""
_CADDY = "{\n\tadmin off\n\tauto_https off\n}\n"


@dataclass(frozen=True)
class Front:
    """A running one, and the proxy behind it."""

    bridge: Bridge
    url: str
    tls: ssl.SSLContext

    def session(self, instance: str) -> Session:
        client = Session(self.url + self.bridge.path(instance), self.bridge.token(instance))
        client.tls, client.host, client.dial = self.tls, NAME, dial
        return client

    def modern(self, instance: str) -> Modern:
        client = Modern(self.url + self.bridge.path(instance), self.bridge.token(instance))
        client.tls, client.host, client.dial = self.tls, NAME, dial
        return client


def dial() -> socket.socket:
    """A socket of the client's own address."""
    made = socket.socket()
    made.setblocking(False)
    made.bind((CLIENT, 0))
    return made


@asynccontextmanager
async def front(kind: str, program: Path, bridge: Bridge, folder: Path) -> AsyncIterator[Front]:
    """Run nginx or caddy by its example, changed in address, certificate and upstream only."""
    authority = Authority(folder)
    certificate, key = folder / "fullchain.pem", folder / "privkey.pem"
    authority.renew(certificate, key, names=(NAME, ADDRESS))
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        port = probe.getsockname()[1]
    upstream = bridge.base.removeprefix("http://")
    if kind == "nginx":
        words = _nginx(program, folder, port, upstream)
    else:
        words = _caddy(program, folder, port, upstream)
    with (folder / "output").open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_DATA_HOME": str(folder)},
        )
    try:

        def answers() -> bool:
            said = (folder / "output").read_text(encoding="utf-8", errors="replace")
            assert process.returncode is None, f"{kind} ended at once: {said[-2000:]}"
            with socket.socket() as probe:
                return probe.connect_ex((ADDRESS, port)) == 0

        await eventually(answers, within=30, what=f"{kind} listens")
        yield Front(bridge, f"https://{ADDRESS}:{port}", authority.client())
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_WITHIN):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def _nginx(program: Path, folder: Path, port: int, upstream: str) -> list[str]:
    live = f"/etc/letsencrypt/live/{NAME}/"
    text = _changed(
        (ROOT / "examples" / "nginx.conf").read_text(encoding="utf-8"),
        {
            "    listen 443 ssl;": f"    listen {ADDRESS}:{port} ssl;",
            "    listen [::]:443 ssl;": "",
            f"{live}fullchain.pem": f"{folder}/fullchain.pem",
            f"{live}privkey.pem": f"{folder}/privkey.pem",
            "127.0.0.1:8765": upstream,
        },
    )
    (folder / "mcp-bridge.conf").write_text(text, encoding="utf-8")
    user = "root" if os.geteuid() == 0 else "nobody"
    main = folder / "nginx.conf"
    main.write_text(_NGINX.format(folder=folder, user=user), encoding="utf-8")
    return [str(program), "-p", str(folder), "-c", str(main), "-e", "stderr"]


def _caddy(program: Path, folder: Path, port: int, upstream: str) -> list[str]:
    own = f"\n\tbind {ADDRESS}\n\ttls {folder}/fullchain.pem {folder}/privkey.pem\n"
    text = _changed(
        (ROOT / "examples" / "Caddyfile").read_text(encoding="utf-8"),
        {f"\n{NAME} {{\n": f"\nhttps://{NAME}:{port} {{{own}", "127.0.0.1:8765": upstream},
    )
    file = folder / "Caddyfile"
    file.write_text(_CADDY + text, encoding="utf-8")
    return [str(program), "run", "--config", str(file), "--adapter", "caddyfile"]


def _changed(text: str, words: dict[str, str]) -> str:
    for word, other in words.items():
        assert word in text, f"the example has no {word!r}"
        text = text.replace(word, other)
    return text
