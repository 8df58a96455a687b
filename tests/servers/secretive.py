"""A fake that is given secrets and tells their digests; it also searches, aborts and blabs.

secretive.py [WORD]     # a word for its command line
"""

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import searching
import stdio
from stdio import error, text, tool


def digest(arguments: dict[str, Any]) -> str:
    """Of a variable's value, or of the file that it names."""
    value = os.environb[arguments["variable"].encode()]
    if arguments.get("file"):
        value = Path(os.fsdecode(value)).read_bytes()
    return hashlib.sha256(value).hexdigest()


def blab(arguments: dict[str, Any]) -> str:
    """Say something on stderr, perhaps a secret, and end."""
    said = arguments["says"].format(**os.environ)
    print(said, file=sys.stderr, flush=True)
    os._exit(3)


def own_path(arguments: dict[str, Any]) -> str:
    return os.environ[arguments["variable"]]


TOOLS = {
    "echo": lambda arguments: arguments["text"],
    "digest": digest,
    "path": own_path,
    "blab": blab,
    "abort": lambda _arguments: os.abort(),
    "names": lambda _arguments: sorted(os.environ),
    "search": lambda arguments: searching.search(arguments["words"], arguments["units"]),
}


def answer(message: dict[str, Any]) -> None:
    ident, params = message["id"], message.get("params") or {}
    match message["method"]:
        case "initialize":
            stdio.result(ident, stdio.initialize_result(message, {"tools": {}}))
        case "tools/list":
            stdio.result(ident, {"tools": [tool(name) for name in TOOLS]})
        case "tools/call":
            text(ident, TOOLS[params["name"]](params.get("arguments") or {}))
        case "ping":
            stdio.result(ident, {})
        case other:
            error(ident, -32601, f"method not found: {other}")


for message in stdio.messages():
    if "id" in message and "method" in message:
        answer(message)
