"""What `systemd-analyze security` says of units before they are in force (systemd-analyze(1)).

The new drop-ins lie in a directory of their own, which is looked through first: whatever else
belongs to the units, an administrator's drop-ins included, is found where systemd finds it.
"""

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.instances import folder_of, service_of
from autobot_mcp_bridge.units.render import DROP_IN
from autobot_mcp_bridge.units.systemctl import SystemctlError, run_tool

# systemd.unit(5), "Unit File Load Path": the first that has the template counts.
_PLACES = ("/etc", "/run", "/usr/local/lib", "/usr/lib")
_TEMPLATE = "autobot-mcp-bridge@.service"
_LEVEL = re.compile(r"Overall exposure level for autobot-mcp-bridge@(\S+)\.service: ([0-9.]+)")


def refusals(specs: Iterable[ServerSpec], texts: Mapping[str, str]) -> Iterator[str]:
    """Each server whose unit is more exposed than its definition allows, with figure and bar.

    Blocks: one run of systemd-analyze for all servers that have a bar, and none without one.

    Args:
        specs: the servers.
        texts: instance to its drop-in, for each that can be started.

    Raises:
        SystemctlError: systemd-analyze cannot tell.
    """
    bars = {
        spec.instance: spec.max_exposure
        for spec in specs
        if spec.max_exposure is not None and spec.instance in texts
    }
    if not bars:
        return
    found = levels({instance: texts[instance] for instance in bars})
    for instance, bar in bars.items():
        if found[instance] > bar:
            yield (
                f"{instance}: $.max_exposure: its unit has {found[instance]:g} "
                f"(systemd-analyze security --offline=true); allowed is at most {bar:g}"
            )


def levels(texts: Mapping[str, str]) -> dict[str, float]:
    """Instance to its figure, from 0 to 10, of units that need not be there yet.

    Raises:
        SystemctlError: systemd-analyze failed, did not end, or left one out.
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
        said = run_tool("systemd-analyze", "security", "--offline=true", "--no-pager", *paths)
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
