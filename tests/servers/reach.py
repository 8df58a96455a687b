"""A server that tries to reach hosts, by tools that say what came of it: the answer, or the error.

get URL                  as Python programs do: urllib, with the proxy of the environment
node URL                 as reach.mjs does, with node's own modules
tls HOST PORT SNI        CONNECT to the one, and TLS for the other
direct ADDRESS PORT      a plain connection
say TEXT                 to the proxy; the first line that it answers
environment              the variables
"""

import json
import os
import socket
import ssl
import subprocess
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import stdio

WITHIN = 30.0
NODE = ("/usr/bin/node", str(Path(__file__).with_name("reach.mjs")))


def get(url: str) -> str:
    with urllib.request.build_opener().open(url, timeout=WITHIN) as response:
        return str(response.read().decode())


def node(url: str) -> str:
    done = subprocess.run([*NODE, url], capture_output=True, timeout=WITHIN, check=False)
    return (done.stdout or done.stderr).decode().strip()


def proxy() -> socket.socket:
    address = urlsplit(os.environ["HTTPS_PROXY"])
    assert address.hostname is not None
    return socket.create_connection((address.hostname, address.port or 0), timeout=WITHIN)


def tls(host: str, port: int, sni: str) -> str:
    context = ssl.create_default_context()
    context.check_hostname = False
    with proxy() as made:
        made.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        answer = made.recv(4096).decode()
        if " 200 " not in answer:
            return answer.splitlines()[0]
        with context.wrap_socket(made, server_hostname=sni) as inner:
            return str(inner.version())


def direct(address: str, port: int) -> str:
    with socket.create_connection((address, port), timeout=WITHIN):
        return "connected"


def say(text: str) -> str:
    with proxy() as made:
        made.sendall(text.encode())
        return made.recv(4096).decode().partition("\r\n")[0]


def environment() -> str:
    return json.dumps(dict(os.environ))


TOOLS = {tool.__name__: tool for tool in (get, node, tls, direct, say, environment)}


def result(tool: str, arguments: dict[str, Any]) -> str:
    try:
        return str(TOOLS[tool](**arguments))
    except (OSError, subprocess.SubprocessError) as error:
        return f"{type(error).__name__}: {error}"


def main() -> None:
    for message in stdio.messages():
        method = message.get("method")
        if method == "initialize":
            stdio.result(message["id"], stdio.initialize_result(message, {"tools": {}}))
        elif method == "tools/list":
            stdio.result(message["id"], {"tools": [stdio.tool(name) for name in TOOLS]})
        elif method == "tools/call":
            asked = message["params"]
            stdio.text(message["id"], result(asked["name"], asked.get("arguments") or {}))


if __name__ == "__main__":
    main()
