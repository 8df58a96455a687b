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
NPM = '#!/bin/sh\nexec /usr/local/bin/node /opt/node/lib/node_modules/npm/bin/npm-cli.js "$@"\n'


def node_binds(need):
    """This machine's node and npm, seen in the container as its own."""
    node = Path(shutil.which("node")).resolve()
    npm = Path(need("npm")).resolve().parents[1]  # bin/npm-cli.js
    return [
        Bind(str(node), "/opt/node/bin/node"),
        Bind(str(npm), "/opt/node/lib/node_modules/npm"),
    ]


@contextmanager
def product_with_registry(lab, suite, name, need):
    """A product whose installs reach a registry of ours, and nothing else."""
    product = installed_product(lab, suite, name, node_binds(need))
    product.container.check("ln", "-s", "/opt/node/bin/node", "/usr/local/bin/node")
    product.container.write("/usr/local/bin/npm", NPM, 0o755)
    with serving(product.listener()) as registry:
        product.pass_to_installs(registry.environ)
        product.registry = registry
        yield product
    product.container.down()


def uvx(name, *words):
    return {"name": name, "command": ["uvx", *words]}


def npx(name, *words):
    return {"name": name, "command": ["npx", "-y", *words]}
