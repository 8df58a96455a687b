"""Taking the product off this host, or from below a root directory; standard library only."""

import pwd
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.units.disk.trees import remove_tree
from autobot_mcp_bridge.units.host import pages, place, static
from autobot_mcp_bridge.units.systemctl import SystemctlError, daemon_reload, run_tool, systemctl

# A package's scripts are made of USERS, LOADED and `owned`, too (debian/rules).
USERS = ("mcp-bridge", "mcp-bridge-egress")
# The last are made by systemd, one for each template; "-" is "\x2d" in their names.
LOADED = ("autobot-mcp-bridge*", "mcp-bridge-*", "mcpbridge.*", "system-*mcp*bridge*.slice")
# What systemd and apply have made for instances, by administrators' drop-ins, masks and wants.
_UNIT_DIRECTORIES = ("etc/systemd/system", "run/systemd/system", "run/systemd/system.control")
_PATTERNS = (
    "autobot-mcp-bridge*",
    "mcp-bridge@*",
    "mcp-bridge-proxy.*",
    "mcp-bridge-operator.*",
    "mcp-bridge-control.*",
    "mcp-bridge-apply.*",
    "mcp-bridge-changed.*",
    "mcp-bridge-fetch*",
    "mcp-bridge-probe.*",
    "mcp-bridge-gc.*",
    "mcp-bridge-egress*",
    "mcpbridge.slice*",
)
_UNITS = "usr/lib/systemd/system"
_INSTANCE = re.compile(r"autobot-mcp-bridge@(.+)\.(?:service|socket)")
_RUNTIME = ("run/mcp-bridge", "run/mcp-bridge-node")
_DATA = (
    "etc/mcp-bridge",
    "var/lib/mcp-bridge",
    "var/lib/private/mcp-bridge",
    "var/lib/mcp-bridge-fetch",
    "var/lib/private/mcp-bridge-fetch",
    "var/cache/mcp-bridge",
    "var/cache/private/mcp-bridge",
)


def owned() -> tuple[str, ...]:
    """All that there may be of ours but what an installation lays: patterns below the root."""
    return (*_unit_files(), *_RUNTIME, *_DATA)


def _unit_files() -> tuple[str, ...]:
    return tuple(
        f"{directory}/{wants}{pattern}"
        for directory in _UNIT_DIRECTORIES
        for wants in ("", "*.wants/")
        for pattern in _PATTERNS
    )


@dataclass(frozen=True, slots=True)
class Uninstaller:
    """One removal.

    Attributes:
        keep_data: leave configuration, tokens, packages and the servers' own files, and the user.
    """

    root: Path
    say: Callable[[str], None]
    keep_data: bool = False

    def uninstall(self) -> bool:
        """Stop everything and remove it; whether there was anything. What fails can be repeated.

        Raises:
            PackagedError: the files are a package's; nothing is removed.
            SystemctlError: systemd refused; nothing is removed.
            OSError: a file cannot be removed.
        """
        before = place.read_manifest(self.root)
        place.refuse_packaged(before)
        live = self.root == Path("/")
        if live:
            self._stop()
        gone = self._units()
        paths = {*place.placed(), *(before.files if before is not None else ())}
        gone += place.remove(self.root, sorted(paths.union(pages.laid(self.root))))
        pages.remove_directories(self.root)
        for path in (*_RUNTIME, *(() if self.keep_data else _DATA)):
            if self._tree(self.root / path):
                gone.append(path)
        if live:
            if gone:
                daemon_reload()
                _reset_failed()
            for user in () if self.keep_data else filter(_is_user, USERS):
                run_tool("userdel", user)
                gone.append(f"the user {user}")
        # At last: it is what runs.
        if self._tree(self.root / place.HOME):
            gone.append(place.HOME)
        for path in gone:
            self.say(f"removed {path if ' ' in path else self.root / path}")
        return bool(gone)

    def _stop(self) -> None:
        """Everything of ours, the proxy first: it would start servers again."""
        first = [unit for unit in static.ENABLED if (self.root / _UNITS / unit).exists()]
        if first:
            self.say("stopping the proxy")
            systemctl("disable", first, "--no-reload")
            systemctl("stop", first)
        rest = _loaded()
        servers = {match[1] for unit in rest if (match := _INSTANCE.fullmatch(unit))}
        if servers:
            self.say(f"stopping {len(servers)} server{'s' if len(servers) > 1 else ''}")
        if rest:
            systemctl("stop", rest)

    def _units(self) -> list[str]:
        """Drop-ins, masks and wants of our units."""
        found = [path for pattern in _unit_files() for path in self.root.glob(pattern)]
        gone = [str(path.relative_to(self.root)) for path in found if self._tree(path)]
        for directory in _UNIT_DIRECTORIES:
            for wants in (self.root / directory).glob("*.wants"):
                with suppress(OSError):  # others' wants stay
                    wants.rmdir()
        return gone

    def _tree(self, path: Path) -> bool:
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.is_dir():
            remove_tree(path)
        else:
            return False
        return True


def _loaded() -> list[str]:
    words = ("--plain", "--no-legend", "--all", "--full")
    text = run_tool("systemctl", "list-units", *words, *LOADED)
    return [line.split()[0] for line in text.splitlines() if line.strip()]


def _reset_failed() -> None:
    for unit in _loaded():
        with suppress(SystemctlError):  # it is not loaded any more
            systemctl("reset-failed", [unit])


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
