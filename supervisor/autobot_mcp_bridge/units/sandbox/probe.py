"""Finding out what this host keeps of the sandbox: root starts a unit that tries it."""

from pathlib import Path

from autobot_mcp_bridge.config import enforced
from autobot_mcp_bridge.model.promises import Facts
from autobot_mcp_bridge.units.systemctl import SystemctlError, systemctl

UNIT = "mcp-bridge-probe.service"
PRINTED = "probe.json"  # in the runtime directory, as the unit says
TIMEOUT = 90.0  # beyond the unit's own TimeoutStartSec=; it takes 1 s


def try_host(runtime_dir: Path) -> Facts:
    """Start the unit and wait for what it finds; 1 s. Blocks.

    Where the sandbox cannot even be set up, no promise is kept, and `why` has systemd's words.
    """
    printed = runtime_dir / PRINTED
    printed.unlink(missing_ok=True)
    try:
        systemctl("start", [UNIT], timeout=TIMEOUT)
        return enforced.parse(printed.read_bytes()[: enforced.MAX_BYTES])
    except SystemctlError as error:
        return enforced.none_kept(f"the sandbox cannot be tried: {str(error).splitlines()[0]}")
    except (OSError, ValueError) as error:
        return enforced.none_kept(f"the sandbox cannot be tried: {error}")
