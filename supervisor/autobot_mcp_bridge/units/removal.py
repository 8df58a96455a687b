"""Taking servers off the host, which nobody can call any more: root's part."""

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from autobot_mcp_bridge.config.headers import remove_header
from autobot_mcp_bridge.config.places import PRODUCT, Places
from autobot_mcp_bridge.config.tokens import TokenStore
from autobot_mcp_bridge.model.names import parse_instance
from autobot_mcp_bridge.units.confinement import Facts
from autobot_mcp_bridge.units.instances import folder_of, service_of, socket_of
from autobot_mcp_bridge.units.render import DROP_IN
from autobot_mcp_bridge.units.systemctl import systemctl

# The records of ends, and for each instance a folder that tells which are its own (ended.py).
ENDED = Path("/run/mcp-bridge/ended")


@dataclass(frozen=True, slots=True)
class Removal:
    """One host.

    Attributes:
        units: the directory of /etc for units.
        say: gets a line for people.
        purge: delete the servers' own files, too.
    """

    places: Places
    facts: Facts
    units: Path
    say: Callable[[str], None]
    purge: bool
    ended: Path = ENDED

    def run(self, instances: Iterable[str], configured: Container[str] = ()) -> None:
        """Stop them and remove what they have; systemd is not told of it yet.

        Args:
            instances: those whose units go.
            configured: those of them that are disabled only, and keep all else.

        Raises:
            SystemctlError: systemd refused; the next run begins anew.
            OSError: a file cannot be removed.
        """
        gone = tuple(instances)
        systemctl("disable", map(socket_of, gone), "--no-reload")
        systemctl("stop", [*map(socket_of, gone), *map(service_of, gone)])
        removed = [instance for instance in gone if instance not in configured]
        if self.purge:
            systemctl("clean", map(service_of, removed), "--what=all")
        tokens = TokenStore(self.places.tokens_d)
        for instance in removed:
            tokens.remove(instance)
            server = parse_instance(instance)
            remove_header(self.places, server)
            self._records(instance)
            if self.purge:
                self._prune(server.directory)
        # At last: by its drop-in the next run knows a server that is still to be removed.
        for instance in gone:
            self._drop_in(instance)

    def _drop_in(self, instance: str) -> None:
        folder = folder_of(self.units, instance)
        (folder / DROP_IN).unlink(missing_ok=True)
        if any(folder.iterdir()):
            self.say(f"kept: {folder}, which holds files of others")
        else:
            folder.rmdir()

    def _records(self, instance: str) -> None:
        """How its invocations ended."""
        own = self.ended / ".of" / instance
        for entry in own.glob("*.*"):
            (self.ended / f"{entry.suffix[1:]}.json").unlink(missing_ok=True)
            entry.unlink()
        if own.is_dir():
            own.rmdir()

    def _prune(self, directory: PurePosixPath) -> None:
        """Take the folders of a tenant and project away that are empty now."""
        for root in (self.facts.state, f"{self.facts.state}/private", self.facts.cache):
            path = Path(root, PRODUCT, directory)
            if path.is_symlink():
                path.unlink()
            for parent in (path, *path.parents[:2]):
                if parent.is_dir() and not any(parent.iterdir()):
                    parent.rmdir()
