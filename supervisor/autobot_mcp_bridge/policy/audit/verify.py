"""Whether a chain is as it was written, and if not, where not."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autobot_mcp_bridge.policy.audit.chain import Link
from autobot_mcp_bridge.policy.audit.files import HEAD, NAME, TORN
from autobot_mcp_bridge.policy.audit.reading import Line, lines

# Faults that are told one by one; the rest is counted.
MAX_TOLD = 100


@dataclass(frozen=True, slots=True)
class Fault:
    """One place that is not as it was written.

    `line` counts from 1; `what` is a clause.
    """

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


@dataclass(slots=True)
class Verdict:
    """What came of a check.

    Attributes:
        lines: how many were read.
        first: the number of the first; above 1 the files before it are gone, which is no fault.
        last: number and digest of the last, to be kept elsewhere and compared.
        faults: the first of them.
        more: how many there are beyond these.
        torn: files with bytes that a power cut has left.
    """

    lines: int = 0
    first: int = 0
    last: tuple[int, str] = (0, "")
    faults: list[Fault] = field(default_factory=list)
    more: int = 0
    torn: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not self.faults

    def add(self, line: Line | None, what: str) -> None:
        if len(self.faults) < MAX_TOLD:
            name, number = (line.path.name, line.number) if line is not None else (NAME, 0)
            self.faults.append(Fault(name, number, what))
        else:
            self.more += 1


def verify(
    paths: Sequence[Path],
    head: tuple[int, str] | None = None,
    expected: tuple[int, str] | None = None,
) -> Verdict:
    """Check the chain through these files, oldest first.

    Args:
        paths: the files.
        head: number and digest of the last line, as the proxy has noted them; it may have gone on.
        expected: those of any line, as somebody has noted them elsewhere.

    Raises:
        OSError: one cannot be read.
    """
    verdict = Verdict()
    before: tuple[Line, Link] | None = None
    broken = 0  # lines since that one of which nothing can be believed
    noted = dict(filter(None, (head, expected)))
    for line in _all(paths):
        verdict.lines += 1
        link = Link.read(line.data) if line.whole else None
        if link is None or not link.intact:
            verdict.add(line, _what(line, link))
            broken += 1
            continue
        if before is None:
            verdict.first = max(1, link.seq - broken)
        else:
            _compare(verdict, before, (line, link), broken)
        if noted.pop(link.seq, link.digest) != link.digest:
            verdict.add(line, "the line is another than the one that was noted")
        before, broken = (line, link), 0
    last = before[0] if before is not None else None
    if before is not None:
        verdict.last = before[1].seq + broken, before[1].digest
    for number in noted:
        if number > verdict.last[0]:
            verdict.add(last, f"{number - verdict.last[0]} lines behind this one are gone")
        elif number < verdict.first:
            verdict.add(last, f"line {number}, which was noted, is no longer kept")
    return verdict


def _what(line: Line, link: Link | None) -> str:
    if not line.whole:
        return "the line is cut off"
    return "the line is no record any more" if link is None else "the line has been changed"


def _compare(
    verdict: Verdict, before: tuple[Line, Link], now: tuple[Line, Link], broken: int
) -> None:
    (last, former), (line, link) = before, now
    missing = link.seq - former.seq - 1 - broken
    if missing > 0:
        verdict.add(line, f"{missing} lines between {last.where} and this one are gone")
    elif missing < 0:
        verdict.add(line, f"the line is out of order: {link.seq} after {former.seq}")
    elif not broken and link.prev != former.digest:
        verdict.add(line, f"the line does not follow {last.where}, which is another now")


def _all(paths: Iterable[Path]) -> Iterator[Line]:
    for path in paths:
        yield from lines(path)


def noted_head(directory: Path) -> tuple[int, str] | None:
    """What the proxy has noted of the last line; None without it.

    To be read before the files are, for a running proxy writes the line first.
    """
    try:
        number, _, digest = (directory / HEAD).read_text(encoding="ascii").strip().partition(" ")
        return int(number), digest
    except (OSError, ValueError):
        return None


def torn_files(directory: Path) -> list[str]:
    """Names of the files with what a power cut has left."""
    return sorted(path.name for path in directory.glob(f"{TORN}*"))
