"""Where the wanted configuration comes from: the files themselves, or what apply has accepted."""

from dataclasses import replace
from typing import Protocol

from autobot_mcp_bridge.config import accepted, enforced, refused
from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.config.load import Loaded, Refused
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.problem import Problem
from autobot_mcp_bridge.config.watch import fingerprint, mark, stable_read
from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.model.promises import Facts
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.states import State


class Source(Protocol):
    """All methods block (disk only): call them in a thread."""

    def read(self) -> tuple[Loaded, str]:
        """The configuration, and the fingerprint that belongs to it; never raises on bad content."""
        ...

    def refused(self) -> tuple[Problem, ...]:
        """Mistakes in files that are not in force, beside a configuration that is."""
        ...

    def host_facts(self) -> Facts:
        """Which promises of the sandbox this host keeps; empty where nobody has found out."""
        ...

    def fingerprint(self) -> str:
        """Another text when the configuration, the tokens or the keys have changed; cheap."""
        ...


class Files:
    """servers.json, servers.d and host.toml: without systemd the proxy reads them itself."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._good: dict[str, ServerSpec] = {}

    def read(self) -> tuple[Loaded, str]:
        loaded, seen = stable_read(self._places, units=False)
        return (loaded if loaded.problems else self._decided(loaded)), seen

    def _decided(self, loaded: Loaded) -> Loaded:
        """A server for which this host lacks something stays what it was, or is not served."""
        refused, servers, before = {}, [], self._good
        self._good = {}
        for spec in loaded.servers:
            lack, last = loaded.lacking.get(spec.instance, ()), before.get(spec.instance)
            if lack:
                why = "; ".join(map(str, lack))
                refused[spec.instance] = Refused(why, kept=last is not None)
            chosen = (last if lack else None) or spec
            servers.append(chosen)
            if spec.enabled and (last is not None or not lack):
                self._good[spec.instance] = chosen
        return replace(loaded, servers=tuple(servers), refused=refused)

    def refused(self) -> tuple[Problem, ...]:
        return ()  # what is wrong is among what is read

    def host_facts(self) -> Facts:
        return {}  # there is no sandbox

    def fingerprint(self) -> str:
        return fingerprint(self._places)


class AcceptedFile:
    """accepted.json: with systemd the proxy never reads what people write.

    Attributes:
        servers: by instance, as last read.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self.servers: dict[str, accepted.AcceptedServer] = {}
        self._had_any = False

    def read(self) -> tuple[Loaded, str]:
        seen = self.fingerprint()
        try:
            found = accepted.read(self._places.accepted)
        except DataError as error:
            file, _, clause = str(error).partition(": ")
            problem = Problem(file, "", "", clause)
            return Loaded((), HostSettings(), (problem,), "", found=False), seen
        if not found.digest and self._had_any:
            # Apply never writes such a one: somebody has deleted or emptied the file.
            clause = "it is gone or empty; `mcp-bridge apply` writes it anew"
            problem = Problem(str(self._places.accepted), "", "", clause)
            return Loaded((), HostSettings(), (problem,), "", found=False), seen
        self._had_any = bool(found.digest)
        self.servers = {server.spec.instance: server for server in found.servers}
        specs = tuple(server.spec for server in found.servers)
        told = {
            server.spec.instance: Refused(server.refused, kept=server.state is not State.REFUSED)
            for server in found.servers
            if server.refused
        }
        return Loaded(specs, found.host, (), found.digest, refused=told), seen

    def refused(self) -> tuple[Problem, ...]:
        return refused.read(self._places.refused)

    def host_facts(self) -> Facts:
        return enforced.read(self._places.enforced)

    def fingerprint(self) -> str:
        places = self._places
        return mark(
            *(places.accepted, places.refused, places.enforced),
            *(places.tokens_d, places.keys_d, places.manifests_d),
        )
