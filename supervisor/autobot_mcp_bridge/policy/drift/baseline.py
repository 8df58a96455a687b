"""What becomes of a server's baseline when a list is seen, and when tools are accepted. Pure.

The first whole list of a server is accepted as it is. From then on a descriptor that is not among
the accepted ones of its name is differing, and stays so until it is accepted, or the server lists
an accepted one again.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from autobot_mcp_bridge.config.baselines import Baseline, Seen
from autobot_mcp_bridge.policy.drift.descriptor import Described

# Names of one server, of the accepted and of the differing tools each.
MOST_TOOLS = 2000
# Descriptors of one tool that count: an upgrade that is taken back needs no second look.
MOST_ACCEPTED = 4
# Bytes of a descriptor, and of all of a server's, that are kept for showing what has changed.
MAX_TEXT = 64 << 10
MAX_TEXTS = 4 << 20
# Hexadecimal digits by which a person tells which differing tools have been looked at.
SEAL = 12


def accepts(baseline: Baseline, name: str, digest: str) -> bool:
    """Tell whether the tool may be listed and called as it is described there."""
    return any(seen.digest == digest for seen in baseline.accepted.get(name, ()))


@dataclass(frozen=True, slots=True)
class Listing:
    """A list, or a page of one, as a server has given it.

    Attributes:
        first: it begins with the first page; of a later one, what differed before still does.
        whole: it has all pages.
        at: the time, in seconds since the epoch.
        package: whose process has listed them.
    """

    tools: tuple[Described, ...]
    first: bool
    whole: bool
    at: int
    package: str | None = None


def see(baseline: Baseline, listing: Listing) -> tuple[list[str], list[str]]:
    """Put into the baseline what a list says.

    Returns the names that are accepted now as they were first seen, and those that differ in a way
    which has not been seen before.
    """
    room = MAX_TEXTS - _kept(baseline)
    fresh: list[str] = []
    told: list[str] = []
    differing: dict[str, Seen] = {}
    for tool in listing.tools:
        if accepts(baseline, tool.name, tool.digest):
            continue
        kept = tool.text if len(tool.text) <= min(MAX_TEXT, room) else None
        seen = Seen(tool.digest, listing.at, listing.package, kept)
        room -= len(kept or "")
        if baseline.whole or tool.name in baseline.accepted or not _has_room(baseline):
            differing.setdefault(tool.name, seen)
        else:
            baseline.accepted[tool.name] = (seen,)
            fresh.append(tool.name)
    names = {tool.name for tool in listing.tools}
    if listing.first:
        for name in names - differing.keys():
            baseline.differing.pop(name, None)
    for name, seen in differing.items():
        before = baseline.differing.get(name)
        if before is not None and before.digest == seen.digest:
            continue
        if before is None and len(baseline.differing) >= MOST_TOOLS:
            continue  # it is not accepted, whether it is remembered or not
        baseline.differing[name] = seen
        told.append(name)
    baseline.package = listing.package
    baseline.gone -= names
    if listing.whole:
        baseline.whole = True
        baseline.gone = baseline.accepted.keys() - names
        for name in baseline.differing.keys() - names:
            del baseline.differing[name]
    return fresh, told


def accept(baseline: Baseline, chosen: Mapping[str, Seen]) -> None:
    """Let descriptors through from now on, whatever has been listed since they were chosen.

    Raises:
        ValueError: there would be too many tools; nothing is changed.
    """
    over = len(baseline.accepted.keys() | chosen.keys()) - MOST_TOOLS
    left = sorted(baseline.gone - chosen.keys())[: max(0, over)]
    if over > len(left):
        raise ValueError(f"allowed are at most {MOST_TOOLS} tools of one server")
    for name in left:
        del baseline.accepted[name]
    for name, seen in chosen.items():
        others = (each for each in baseline.accepted.get(name, ()) if each.digest != seen.digest)
        baseline.accepted[name] = (*others, seen)[-MOST_ACCEPTED:]
        if accepts(baseline, name, baseline.differing.get(name, seen).digest):
            baseline.differing.pop(name, None)
    baseline.gone -= {*left, *chosen}
    baseline.whole = True


def state_of(baseline: Baseline, name: str) -> str:
    """`accepted`, `new`, `changed` or `gone`."""
    if name in baseline.differing:
        return "changed" if name in baseline.accepted else "new"
    return "gone" if name in baseline.gone else "accepted"


def seal(baseline: Baseline) -> str:
    """By which a person says which differing tools have been looked at."""
    said = sorted(f"{name}\0{seen.digest}" for name, seen in baseline.differing.items())
    return hashlib.sha256("\0".join(said).encode("utf-8", "surrogatepass")).hexdigest()[:SEAL]


def _has_room(baseline: Baseline) -> bool:
    return len(baseline.accepted) < MOST_TOOLS


def _kept(baseline: Baseline) -> int:
    every = [
        *baseline.differing.values(),
        *(s for each in baseline.accepted.values() for s in each),
    ]
    return sum(len(seen.text or "") for seen in every)
