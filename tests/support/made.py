"""Packages for the registry of tests: small servers in Python and JavaScript, and who installs them.

Both have two tools: `say` tells the language, `version` the package's version.
"""

import shutil
from contextlib import contextmanager
from pathlib import Path

from lab.spec import Bind
from support.product import installed_product
from support.registry import serving

# A whole server in a few lines of Python, as the code of a package's main().
_PY_SERVER = """\
import json, sys
SAID = {"say": "from python", "version": "@VERSION@"}
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
             "serverInfo": {"name": "py", "version": "1"}}
    elif m.get("method") == "tools/list":
        r = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in SAID]}
    elif m.get("method") == "tools/call":
        r = {"content": [{"type": "text", "text": SAID[m["params"]["name"]]}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"""
JS_SERVER = """\
const said = { say: "from node", version: "@VERSION@" };
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const m = JSON.parse(line);
  let r = null;
  if (m.method === "initialize")
    r = { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "js", version: "1" } };
  else if (m.method === "tools/list") r = { tools: Object.keys(said).map((name) => ({ name, inputSchema: { type: "object" } })) };
  else if (m.method === "tools/call") r = { content: [{ type: "text", text: said[m.params.name] }] };
  if (r) console.log(JSON.stringify({ jsonrpc: "2.0", id: m.id, result: r }));
});
"""
# As the body of a package's main().
PY_SERVER = _PY_SERVER.strip().replace("\n", "\n    ")
_RUNNER = '#!/bin/sh\nexec /usr/local/bin/node /opt/node/lib/node_modules/npm/bin/{}-cli.js "$@"\n'


def node_binds(need):
    """This machine's node and npm, seen in the container as its own."""
    node = Path(shutil.which("node")).resolve()
    npm = Path(need("npm")).resolve().parents[1]  # bin/npm-cli.js
    return [
        Bind(str(node), "/opt/node/bin/node"),
        Bind(str(npm), "/opt/node/lib/node_modules/npm"),
    ]


def uv_binds(need):
    """This machine's uv and uvx, likewise, and not on PATH yet."""
    folder = Path(need("uv")).parent
    return [Bind(str(folder / name), f"/opt/uv/{name}") for name in ("uv", "uvx")]


def put_node(container):
    container.check("ln", "-sf", "/opt/node/bin/node", "/usr/local/bin/node")
    container.write("/usr/local/bin/npm", _RUNNER.format("npm"), 0o755)


def put_runners(container):
    """npx and uvx on PATH, with what they need."""
    put_node(container)
    container.write("/usr/local/bin/npx", _RUNNER.format("npx"), 0o755)
    container.check("ln", "-sf", "/opt/uv/uv", "/opt/uv/uvx", "/usr/local/bin/")


@contextmanager
def product_with_registry(lab, suite, name, need, *, binds=(), loopback=True):
    """A product whose installs reach a registry of ours, and nothing else.

    It listens on the container's loopback, or on its address in the lab.
    """
    product = installed_product(lab, suite, name, [*node_binds(need), *binds])
    address = "127.0.0.1" if loopback else product.container.place.address.read_text("utf-8")
    put_node(product.container)
    with serving(product.listener(address)) as registry:
        product.pass_to_installs(registry.environ)
        product.registry = registry
        yield product
    product.container.down()


def uvx(name, *words):
    return {"name": name, "command": ["uvx", *words]}


def npx(name, *words):
    return {"name": name, "command": ["npx", "-y", *words]}
