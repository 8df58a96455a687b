"""Installing the product on this host, or below a root directory; standard library only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge import __version__
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.units.host import pages, place, static
from autobot_mcp_bridge.units.host.program import Program
from autobot_mcp_bridge.units.systemctl import SystemctlError, daemon_reload, run_tool, systemctl

APPLY = "mcp-bridge-apply.service"
_POLKIT = ("/usr/lib/polkit-1/polkitd", "/usr/libexec/polkitd", "/usr/lib/policykit-1/polkitd")


@dataclass(frozen=True, slots=True)
class Installer:
    """One installation.

    Attributes:
        root: below which everything is laid; systemd is told of it only where that is "/".
        say: gets a line for people at each step that does something.
        package: the package that is being made of the files, which alone may change them later.
    """

    root: Path
    say: Callable[[str], None]
    package: str | None = None

    def install(self, environ: Mapping[str, str], places: Places) -> bool:
        """Put everything in place; whether anything was not so before. What fails can be repeated.

        Raises:
            InstallError: the program cannot be made; what ran before goes on.
            PackagedError: the files are a package's.
            SystemctlError: systemd refused.
            OSError: a file cannot be written.
        """
        before = place.read_manifest(self.root)
        if self.package is None:
            place.refuse_packaged(before)
        program = Program(self.root, self.say)
        renewed = program.ensure(environ)
        # A package manager or Ansible may have exchanged it before.
        renewed = renewed or (before is not None and before.program != program.name())
        made = pages.made(self.root)
        changed = place.place(self.root, made)
        for path in changed:
            self.say(f"laid {self.root / path}")
        old = before.files if before is not None else ()
        for path in place.remove(self.root, sorted(set(old).difference(place.placed(), made))):
            self.say(f"removed {self.root / path}, which is of an older version")
            changed.append(path)
        had = before.enabled if before is not None else ()
        enabled = had
        if self.root == Path("/"):
            new = [unit for unit in static.ENABLED if unit not in had]
            self._live(new, changed, places, first=not had, renewed=renewed)
            enabled = (*had, *new)
        manifest = place.Manifest(
            __version__, (*place.placed(), *made), enabled, self.package, program.name()
        )
        program.forget_older()
        if manifest == before and not changed and not renewed:
            return False
        place.write_manifest(self.root, manifest)
        return True

    def _live(
        self,
        new: Sequence[str],
        changed: Sequence[str],
        places: Places,
        *,
        first: bool,
        renewed: bool,
    ) -> None:
        run_tool("systemd-sysusers", f"/{static.FILES['sysusers.conf']}")
        run_tool("systemd-tmpfiles", "--create", f"/{static.FILES['tmpfiles.conf']}")
        if changed:
            self.say("systemd reads its units again")
            daemon_reload()
        if new:
            self.say(f"enabling {', '.join(new)}")
            systemctl("enable", new)
        units = {Path(path).name for path in changed}
        sockets = units.intersection(static.SOCKETS)
        if not first and (renewed or sockets or static.PROXY in units):
            # A socket's restart is the proxy's own, too; a new socket's start frees its port first.
            self.say(" and ".join(("restarting the proxy", *sorted(sockets))))
            systemctl("restart", sockets.intersection(new))
            systemctl("try-restart", sockets.difference(new))
            systemctl("try-restart", () if sockets else [static.PROXY])
        if renewed or static.EGRESS in units:
            systemctl("try-restart", [static.EGRESS])  # connections that it carries end
        # Its ports become drop-ins of the sockets, which are to be opened nowhere else before.
        applied = first and places.host_toml.exists()
        if applied:
            self._apply(places)
        started = [unit for unit in new if unit != APPLY]
        if started:
            self.say(f"starting {', '.join(started)}")
            systemctl("start", started)
        if not applied and (new or changed or renewed or not _has_text(places.accepted)):
            self._apply(places)
        if not any(Path(path).exists() for path in _POLKIT):
            self.say(
                "polkit is not installed: the proxy can start servers, but not stop them; "
                "run: apt-get install polkitd"
            )

    def _apply(self, places: Places) -> None:
        """A mistake in the configuration is no failure of the installation."""
        if not places.servers_json.exists() and not any(places.servers_d.glob("*.json")):
            self.say("no servers yet: `mcp-bridge add NAME -- COMMAND` makes the first")
        try:
            systemctl("start", [APPLY])
        except SystemctlError:
            self.say(
                f"not all of the configuration is in force: journalctl -t {APPLY[:-8]} tells why"
            )


def _has_text(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False
