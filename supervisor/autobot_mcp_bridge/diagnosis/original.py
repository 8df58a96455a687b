"""The server's own unit: what counts for it, and what another instance needs to be the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.diagnosis.secret_values import content, decrypted, forms
from autobot_mcp_bridge.diagnosis.unit_text import as_instance, entries, plain, values
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.instances import service_of
from autobot_mcp_bridge.units.manager import Manager, UnitFacts
from autobot_mcp_bridge.units.sandbox.confinement import directory

MOST_BYTES = 4 << 20  # of one drop-in; a command line alone may have 1 MiB


@dataclass(frozen=True, slots=True)
class Original:
    """A server whose unit is in force.

    Attributes:
        argv: what its unit executes, after the launcher.
        facts: of its service.
        template: the texts that count for every instance, in their order.
        own: name to text of the drop-ins of this instance, in their order, with its name filled in.
    """

    spec: ServerSpec
    argv: tuple[str, ...]
    facts: UnitFacts
    template: tuple[str, ...]
    own: dict[str, str]

    @classmethod
    def read(cls, spec: ServerSpec, argv: Sequence[str], manager: Manager) -> "Original":
        """Blocks (disk, systemd).

        Raises:
            SystemctlError: systemd does not answer.
            OSError: a file that counts cannot be read.
        """
        unit = service_of(spec.instance)
        facts = manager.facts(unit)
        paths = [Path(text) for text in (facts.fragment, *facts.drop_ins) if text]
        own = [path for path in paths if path.parent.name == f"{unit}.d"]
        return cls(
            spec,
            tuple(argv),
            facts,
            tuple(_read(path) for path in paths if path not in own),
            {path.name: as_instance(_read(path), unit, spec.instance) for path in own},
        )

    @property
    def texts(self) -> tuple[str, ...]:
        return (*self.template, *self.own.values())

    @property
    def home(self) -> str:
        """Its own directory, which is $HOME unless `env` says otherwise."""
        return f"/var/lib/{directory(self.spec)}"

    def values(self, directive: str) -> list[str]:
        return values(self.texts, directive)

    def entries(self, directive: str) -> list[str]:
        return entries(self.texts, directive)

    @property
    def credentials(self) -> list[tuple[str, str]]:
        """Name and file of each credential (LoadCredential= and LoadCredentialEncrypted=)."""
        return [
            (name, path)
            for directive in ("LoadCredential", "LoadCredentialEncrypted")
            for path, name in self._credentials(directive).items()
        ]

    def secrets(self) -> list[str]:
        """Values that must not be shown, in their forms; blocks (disk, systemd)."""
        stored = (content(Path(path)) for path in self._credentials("LoadCredential"))
        locked = (decrypted(Path(path)) for path in self._credentials("LoadCredentialEncrypted"))
        return [*forms((*self.spec.env.values(), *stored, *locked))]

    def _credentials(self, directive: str) -> dict[str, str]:
        """File to name, of one directive."""
        pairs = (text.partition(":") for text in self.values(directive))
        return {plain(path): plain(name) for name, colon, path in pairs if colon}


def _read(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(MOST_BYTES)
