"""Set up what the proxy needs, then become `mcp-bridge serve`; the first time with the examples.

    python3 tools/run.py [words for mcp-bridge serve]

An ordinary user's environment is .venv in the checkout. As root, servers run as other uids, which
cannot look into root's home: there a copy is installed below the state directory.
"""

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from venv_tools import ROOT, SetupError, Wanted, make

from autobot_mcp_bridge.config.places import default_places
from autobot_mcp_bridge.units.access.reach import blocked_at

STATE = Path(os.environ.get("MCP_BRIDGE_STATE_DIR") or "/var/lib/mcp-bridge")
SYSTEM_PYTHON = Path("/usr/bin/python3")
EXAMPLES = ROOT / "examples"
# With what the documented commands need, such as `mcp-bridge import` of YAML.
SERVING = Wanted(more=("uv",), extras=("import",))


def main(words: list[str]) -> int:
    """Return only where it fails; else this process is the proxy from then on."""
    if not {"-h", "--help"}.isdisjoint(words):
        print(__doc__)
        return 0
    root = os.geteuid() == 0
    try:
        if root:
            folder = _reachable_state() / "venv.d"
            make(folder, _base_for_all(), replace(SERVING, editable=False))
        else:
            folder = ROOT / ".venv"
            _own(folder)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    program = folder / "bin/mcp-bridge"
    command = [str(program), "serve", "--make-tokens", "--calls", str(EXAMPLES / "calls.json")]
    if not any(word.startswith("--config-dir") for word in words):
        _copy_examples()
    sys.stdout.flush()
    os.execv(program, [*command, *words])
    return 1


def _copy_examples() -> None:
    """What is served the first time, where it can be changed without changing the checkout."""
    places = default_places()
    if places.servers_json.exists() or places.servers_d.exists():
        return
    places.config_dir.mkdir(mode=0o755, parents=True, exist_ok=True)
    shutil.copyfile(EXAMPLES / "servers.json", places.servers_json)
    places.servers_json.chmod(0o644)
    print(f"{places.servers_json} is a copy of {EXAMPLES / 'servers.json'}")


def _own(folder: Path) -> None:
    """An ordinary user's .venv; one that `make setup` made holds all that is needed, and more."""
    import setup  # noqa: PLC0415 - only here

    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    larger = Wanted(groups=("dev",), more=() if setup.host_has_node() else (setup.NODE_WHEEL,))
    stamp = folder / ".dependencies"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == larger.digest(base):
        return
    make(folder, base, SERVING)


def _reachable_state() -> Path:
    STATE.mkdir(parents=True, exist_ok=True)
    if STATE.stat().st_uid == 0:
        # What is private below it has modes of its own.
        STATE.chmod(STATE.stat().st_mode | 0o711)
    return STATE


def _base_for_all() -> Path:
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    if blocked_at(base) is None:
        return base
    if not SYSTEM_PYTHON.exists():
        raise SetupError(f"{base} can be run by root only; run: apt-get install python3-venv")
    return SYSTEM_PYTHON


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
