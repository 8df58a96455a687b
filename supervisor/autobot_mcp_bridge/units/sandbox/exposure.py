"""What `systemd-analyze security` says of units before they are in force (systemd-analyze(1)).

The new drop-ins lie in a directory of their own, which is looked through first: whatever else
belongs to the units, an administrator's drop-ins included, is found where systemd finds it.
"""

import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.instances import DROP_IN, folder_of, service_of
from autobot_mcp_bridge.units.systemctl import TIMEOUT, SystemctlError, run_tool

# systemd.unit(5), "Unit File Load Path": the first that has the template counts.
_PLACES = ("/etc", "/run", "/usr/local/lib", "/usr/lib")
_TEMPLATE = "autobot-mcp-bridge@.service"
_LEVEL = re.compile(r"Overall exposure level for autobot-mcp-bridge@(\S+)\.service: ([0-9.]+)")


def over(servers: Iterable[tuple[ServerSpec, str]]) -> dict[str, str]:
    """Instance to figure and bar, for each whose unit is more exposed than its definition allows.

    One that nobody can judge is too exposed. Blocks: one run of systemd-analyze for all servers
    that have a bar, and none without one.

    Args:
        servers: each with its drop-in.
    """
    barred = {
        spec.instance: (spec, text) for spec, text in servers if spec.max_exposure is not None
    }
    if not barred:
        return {}
    try:
        found = levels({instance: text for instance, (_, text) in barred.items()})
    except SystemctlError as error:
        if len(barred) > 1:  # what is wrong with one unit is not to count for the others
            alone = [over([pair]) for pair in barred.values()]
            return {instance: clause for one in alone for instance, clause in one.items()}
        return dict.fromkeys(barred, f"$.max_exposure: it cannot be judged: {error}")
    return {
        instance: (
            f"$.max_exposure: its unit has {found[instance]:g} "
            f"(systemd-analyze security --offline=true); allowed is at most {spec.max_exposure:g}"
        )
        for instance, (spec, _) in barred.items()
        if spec.max_exposure is not None and found[instance] > spec.max_exposure
    }


def levels(texts: Mapping[str, str], *, timeout: float = TIMEOUT) -> dict[str, float]:
    """Instance to its figure, from 0 to 10, of units that need not be there yet.

    Raises:
        SystemctlError: systemd-analyze failed, did not end in time, or left one out.
    """
    with tempfile.TemporaryDirectory(prefix="mcp-bridge-exposure-") as name:
        units = Path(name)
        # A directory that holds drop-ins alone is not looked through (252).
        (units / _TEMPLATE).symlink_to(_template())
        for instance, text in texts.items():
            folder = folder_of(units, instance)
            folder.mkdir()
            (folder / DROP_IN).write_text(text, encoding="utf-8")
        paths = [str(units / service_of(instance)) for instance in texts]
        command = ("systemd-analyze", "security", "--offline=true", "--no-pager", *paths)
        said = run_tool(*command, timeout=timeout)
    found = {instance: float(level) for instance, level in _LEVEL.findall(said)}
    if missing := texts.keys() - found.keys():
        raise SystemctlError(
            f"systemd-analyze security told nothing of {', '.join(sorted(missing))}"
        )
    return found


def _template() -> Path:
    for place in _PLACES:
        if (path := Path(place, "systemd/system", _TEMPLATE)).exists():
            return path
    raise SystemctlError(f"{_TEMPLATE} is not there; run: mcp-bridge install")
