"""Taking servers off the host, which nobody can call any more: root's part."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.config.baselines import BaselineFiles
from autobot_mcp_bridge.config.headers import remove_header
from autobot_mcp_bridge.config.places import PRODUCT, Places
from autobot_mcp_bridge.config.tokens import TokenStore
from autobot_mcp_bridge.model.names import ServerId, parse_instance
from autobot_mcp_bridge.units.disk.trees import remove_tree
from autobot_mcp_bridge.units.instances import DROP_IN, folder_of, service_of, socket_of
from autobot_mcp_bridge.units.sandbox.confinement import Facts
from autobot_mcp_bridge.units.systemctl import SystemctlError, systemctl

# The records of ends, and for each instance a folder that tells which are its own (ended.py).
ENDED = Path("/run/mcp-bridge/ended")


@dataclass(frozen=True, slots=True)
class Removal:
    """One host.

    Attributes:
        units: the directory of /etc for units.
        say: gets a line for people.
    """

    places: Places
    facts: Facts
    units: Path
    say: Callable[[str], None]
    ended: Path = ENDED

    def stop(self, instances: Iterable[str]) -> None:
        """Have none of them run, and none started any more.

        Raises:
            SystemctlError: systemd refused.
        """
        gone = tuple(instances)
        systemctl("disable", map(socket_of, gone), "--no-reload")
        systemctl("stop", [*map(socket_of, gone), *map(service_of, gone)])
        for unit in map(service_of, gone):
            with suppress(SystemctlError):  # it is not loaded any more
                systemctl("reset-failed", [unit])

    def forget(self, instances: Iterable[str], *, purge: bool) -> None:
        """Remove what is for these, but for their drop-ins.

        Args:
            instances: no file of the configuration holds them any more.
            purge: delete their own files, too.
        """
        tokens = TokenStore(self.places.tokens_d)
        for server in map(parse_instance, sorted(instances)):
            tokens.remove(server.instance)
            BaselineFiles(self.places.tools_d).remove(server.instance)
            remove_header(self.places, server)
            forget_records(self.ended, server.instance)
            if purge:
                self.purge(server)

    def unlink(self, instances: Iterable[str]) -> None:
        """Remove their drop-ins, last: by them the next run knows what is still to be removed."""
        for instance in instances:
            folder = folder_of(self.units, instance)
            (folder / DROP_IN).unlink(missing_ok=True)
            if any(folder.iterdir()):
                self.say(f"kept: {folder}, which holds files of others")
            else:
                folder.rmdir()

    def purge(self, server: ServerId) -> None:
        """Delete a server's own directories, and those of its project and tenant if empty now.

        Not by `systemctl clean`, which refuses a unit that has failed and knows nothing of one
        whose drop-in is gone.
        """
        roots = (self.facts.state, self.facts.cache)
        for root in (*roots, *(f"{root}/private" for root in roots)):
            purge_directory(Path(root, PRODUCT, server.directory))


def purge_directory(path: Path) -> None:
    """Delete a server's directory, or the link to it, and its project's and tenant's if empty."""
    if path.is_symlink():
        path.unlink()
    elif path.is_dir():
        remove_tree(path)
    for parent in path.parents[:2]:
        if parent.is_dir() and not any(parent.iterdir()):
            parent.rmdir()


def forget_records(ended: Path, instance: str) -> None:
    """Delete how an instance's invocations have ended."""
    own = ended / ".of" / instance
    for entry in own.glob("*.*"):
        (ended / f"{entry.suffix[1:]}.json").unlink(missing_ok=True)
        entry.unlink()
    if own.is_dir():
        own.rmdir()
