"""manifests.d: one file per agent type; a file with a mistake holds up itself alone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autobot_mcp_bridge.config.files import RefusedFileError, read_bounded
from autobot_mcp_bridge.config.problem import Problem
from autobot_mcp_bridge.policy.manifest.check import Checked, check
from autobot_mcp_bridge.policy.manifest.text import Expansion, parse

SUFFIXES = (".json", ".yaml", ".yml")
MAX_FILES = 1000


@dataclass(frozen=True, slots=True)
class Manifests:
    """What is in force.

    Attributes:
        by_type: each agent type's.
        present: whether manifests.d is there; then a type without one may do nothing.
        problems: of files that are not in force, or no longer as they stand.
        variables: what manifests hold of the proxy's environment, for who redacts it.
    """

    by_type: Mapping[str, Checked] = field(default_factory=dict)
    present: bool = False
    problems: tuple[Problem, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(note for checked in self.by_type.values() for note in checked.notes)


class ManifestFiles:
    """The files of one directory. `scan` blocks (disk, YAML): call it in a thread."""

    def __init__(
        self, directory: Path, environ: Mapping[str, str] | None, *, shared: bool = False
    ) -> None:
        """Args as those of `Expansion` and `check`."""
        self._shared = shared
        self._directory = directory
        self._environ = environ
        self._good: dict[str, Checked] = {}

    def scan(self) -> Manifests:
        """Read them all; never raises on bad content. A file's last good state stays in force."""
        problems: list[Problem] = []
        variables: set[str] = set()
        names = self._names(problems)
        if names is None:
            self._good = {}
            return Manifests()
        read = {name: self._read(self._directory / name, problems, variables) for name in names}
        kept = {name: checked or self._good.get(name) for name, checked in read.items()}
        self._good = {name: checked for name, checked in kept.items() if checked is not None}
        by_type: dict[str, Checked] = {}
        owners: dict[str, list[str]] = {}
        for name, checked in self._good.items():
            owners.setdefault(checked.manifest.agent_type, []).append(name)
        for kind, files in owners.items():
            if len(files) == 1:
                by_type[kind] = self._good[files[0]]
                continue
            text = f"the same agent_type stands in {', '.join(files)}; none of them counts"
            problems.append(Problem(str(self._directory), "", "", text))
        return Manifests(by_type, True, tuple(problems), self._values(variables))

    def _values(self, variables: Iterable[str]) -> dict[str, str]:
        environ = self._environ or {}
        return {name: environ[name] for name in variables if name in environ}

    def _names(self, problems: list[Problem]) -> list[str] | None:
        """The files that count; None where there is no directory."""
        try:
            found = [entry.name for entry in self._directory.iterdir()]
        except FileNotFoundError:
            return None
        except OSError as error:
            text = f"cannot be listed: {error.strerror}"
            problems.append(Problem(str(self._directory), "", "", text))
            return list(self._good)
        names = sorted(n for n in found if n.endswith(SUFFIXES) and not n.startswith("."))
        if len(names) > MAX_FILES:
            text = f"allowed are at most {MAX_FILES} files"
            problems.append(Problem(str(self._directory), "", "", text))
        return names[:MAX_FILES]

    def _read(self, file: Path, problems: list[Problem], variables: set[str]) -> Checked | None:
        try:
            data = read_bounded(file)
        except FileNotFoundError:
            return None
        except RefusedFileError as error:
            problems.append(Problem(str(file), "", "", str(error)))
            return None
        value, wrong = parse(data, file)
        if wrong:
            problems += wrong
            return None
        expansion = Expansion(self._environ)
        value = expansion.of(value)
        wrong = expansion.problems(str(file))
        checked, more = (None, []) if wrong else check(value, str(file), shared=self._shared)
        problems += wrong + more
        variables |= expansion.used
        return checked
