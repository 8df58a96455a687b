"""What mcp-bridge-fetch@.service starts: install one package, as a stranger, in the sandbox.

    python3 -I -m autobot_mcp_bridge.units.fetch.install STORE

What it is to install is the credential `request`. STORE is the unit's own directory, bound to where
the store is, so that what is installed names the paths that it will have. What it says at the
end, failed.json, is a stranger's word: the install scripts of the package run as this user.
"""

import json
import os
import sys
from pathlib import Path

from autobot_mcp_bridge.units.fetch.fetches import Request
from autobot_mcp_bridge.units.packages.installer import install_package, upgrade_package
from autobot_mcp_bridge.units.packages.job import InstallError, Job, without_log
from autobot_mcp_bridge.units.packages.node import WHEEL, has_host_node
from autobot_mcp_bridge.units.packages.specs import Kind
from autobot_mcp_bridge.units.packages.store import MARKER, Store

NODE = Path("/run/mcp-bridge-node")  # as in the unit
FAILED = "failed.json"
NEEDS_NODE = 75  # EX_TEMPFAIL
_OWN = ("PATH", "HOME", "LANG", "TMPDIR")


def main(root: str) -> int:
    store = Store(Path(root))
    text = Path(os.environ["CREDENTIALS_DIRECTORY"], "request").read_bytes()
    (store.root / FAILED).unlink(missing_ok=True)
    try:
        request = Request.decode(text)
        environ = {
            name: os.environ[name] for name in (*_OWN, *request.passed) if name in os.environ
        }
        store.prepare()
        job = Job(store.log_file("install"), environ)
        spec = request.package
        print(f"installing {spec.label} ({spec.kind.value})", flush=True)
        _show_node(store)
        if spec.kind is Kind.NPM and not (has_host_node(store, job) or store.find(WHEEL)):
            return _end(store, "this host has no node that is new enough", NEEDS_NODE)
        if request.upgrade:
            installed = upgrade_package(spec, request.upgrade, store, job)
        else:
            installed = install_package(spec, store, job)
    except (InstallError, OSError) as error:
        return _end(store, without_log(str(error)), 1)  # root clears the store away
    print(f"installed {spec.label}, version {installed.version}", flush=True)
    return 0


def _show_node(store: Store) -> None:
    """Have the node that root's store holds at its place in ours, too."""
    place = store.directory(WHEEL, str(WHEEL.version))
    if (NODE / MARKER).exists() and not place.exists():
        place.symlink_to(NODE)


def _end(store: Store, why: str, status: int) -> int:
    print(why, file=sys.stderr, flush=True)
    document = {"why": why, "needs_node": status == NEEDS_NODE}
    (store.root / FAILED).write_text(json.dumps(document), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
