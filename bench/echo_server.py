#!/usr/bin/env python3
"""Minimal stdio MCP server (standard library only): the hosted server of every gateway measured.

echo(text="", size=0, delay=0) returns text followed by `size` bytes of 'x', after `delay` seconds.
A timer thread writes delayed answers, so any head-of-line blocking seen is the gateway's.
"""

import json
import os
import sys
import threading

READ_SIZE = 1 << 18
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ABOUT = {
    "capabilities": {"tools": {"listChanged": False}},
    "serverInfo": {"name": "echo", "version": "1.0.0"},
}
ECHO = {
    "name": "echo",
    "description": "Echo text, padded with size bytes, after delay seconds",
    "inputSchema": {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "size": {"type": "integer"},
            "delay": {"type": "number"},
        },
    },
}
writing = threading.Lock()


def write(data):
    with writing:
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]


def encode(ident, **outcome):
    message = {"jsonrpc": "2.0", "id": ident, **outcome}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def call(ident, params):
    """The answer's bytes, or b"" when they come later."""
    if params.get("name") != "echo":
        return encode(ident, error={"code": -32602, "message": "unknown tool"})
    given = params.get("arguments") or {}
    text = str(given.get("text", "")) + "x" * int(given.get("size") or 0)
    answer = encode(ident, result={"content": [{"type": "text", "text": text}]})
    delay = float(given.get("delay") or 0)
    if delay <= 0:
        return answer
    timer = threading.Timer(delay, write, (answer,))
    timer.daemon = True
    timer.start()
    return b""


def handle(line):
    message = json.loads(line)
    if "method" not in message or "id" not in message:
        return b""
    ident, params = message["id"], message.get("params") or {}
    match message["method"]:
        case "tools/call":
            return call(ident, params)
        case "initialize":
            asked = params.get("protocolVersion")
            version = asked if asked in VERSIONS else VERSIONS[-1]
            return encode(ident, result={"protocolVersion": version, **ABOUT})
        case "tools/list":
            return encode(ident, result={"tools": [ECHO]})
        case "ping":
            return encode(ident, result={})
        case method:
            return encode(ident, error={"code": -32601, "message": f"method not found: {method}"})


def main():
    rest = b""
    while chunk := os.read(0, READ_SIZE):
        if b"\n" not in chunk:
            rest += chunk
            continue
        *lines, rest = (rest + chunk).split(b"\n")
        if answers := b"".join(handle(line) for line in lines if line.strip()):
            write(answers)


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(0)
