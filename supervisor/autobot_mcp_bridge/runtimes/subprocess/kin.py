"""Which processes belong to a server, and their end: its group, and what escaped from it.

Everything that a server starts stays below it, or, once orphaned, below us (kernel.py). Of our
orphans these belong to a server: those that carry its invocation in their environment, are of
its session, were seen below it before, or run as its uid. The calls here block shortly; they run
in the runtime's survey thread.
"""

import os
import threading
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from autobot_mcp_bridge.runtimes.subprocess import proc
from autobot_mcp_bridge.runtimes.subprocess.environment import INVOCATION


@dataclass(slots=True, eq=False)
class Kin:
    """The processes of one invocation.

    Attributes:
        uid: the uid that is this server's alone; None where servers share one.
        memory: how many bytes they may use together.
        main: pid of the main process; 0 before there is one.
        ended: whether the main process is gone, so that all others go too.
        known: start time by pid of what was seen at the last look.
    """

    invocation: str
    uid: int | None
    memory: int
    main: int = 0
    ended: bool = False
    known: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Mains:
    """The children that are waited for one by one; whoever else reaps asks here first.

    The lock is held over fork and entry, so that with it no child is seen that is not entered.
    The key is the invocation: a pid could come again before its old entry is removed.
    """

    pids: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Census:
    """Finds the kin of all servers of a runtime, and reaps the orphans among them."""

    def __init__(self, mains: Mains) -> None:
        self._mains = mains
        self._us = proc.look(os.getpid())
        self._told = not proc.no_new_privs(os.getpid())
        self._unclaimed: set[tuple[int, int]] = set()

    def orphans(self, kin: Collection[Kin]) -> dict[Kin, list[proc.Seen]]:
        """The orphans of each; those that are dead already are reaped and told once."""
        found: dict[Kin, list[proc.Seen]] = {}
        unclaimed = set()
        for seen in self._adopted():
            owner = _owner(seen, kin)
            if owner is None and self._is_some_servers(seen):
                if len(kin) == 1:  # then it is that one's
                    owner = next(iter(kin))
                elif seen.zombie:
                    unclaimed.add((seen.pid, seen.start))
            if owner is not None:
                found.setdefault(owner, []).append(seen)
                if seen.zombie:
                    _reap(seen.pid)
        # Whose it was can no longer be told. One that we started ourselves would have been waited
        # for by now, so the second time it is seen it is taken.
        for pid, _ in unclaimed & self._unclaimed:
            _reap(pid)
        self._unclaimed = unclaimed
        return found

    def end(self, one: Kin, kin: Collection[Kin]) -> bool:
        """Kill what is left of an ended server; tell whether there was anything.

        Only a look that finds nothing at all, not even a zombie, proves that nothing is left:
        what dies while we look hands its children to us after we have counted ours.
        """
        left = self.orphans(kin).get(one, [])
        for orphan in left:
            if not orphan.zombie:
                for seen in proc.tree(orphan.pid).values():
                    # As a zombie it has nothing left to know it by.
                    one.known[seen.pid] = seen.start
                    proc.kill(seen)
        return bool(left)

    def members(
        self, one: Kin, orphans: Collection[proc.Seen], *, all_threads: bool
    ) -> Collection[proc.Seen]:
        """All living processes of a server; remembers them."""
        found: dict[int, proc.Seen] = {}
        for root in (one.main, *(seen.pid for seen in orphans if not seen.zombie)):
            found |= proc.tree(root, all_threads=all_threads)
        one.known = {seen.pid: seen.start for seen in found.values()}
        return found.values()

    def _adopted(self) -> Iterator[proc.Seen]:
        with self._mains.lock:
            own = set(self._mains.pids.values())
            pids = [pid for pid in proc.children(os.getpid()) if pid not in own]
        for pid in pids:
            seen = proc.look(pid)
            if seen is not None:
                yield seen

    def _is_some_servers(self, seen: proc.Seen) -> bool:
        # What the proxy itself starts has no reason for this flag, a server cannot lose it.
        # Where we have it as well, it tells nothing, and the zombie stays until we end.
        return (
            self._told
            and self._us is not None
            and seen.session != self._us.session
            and proc.no_new_privs(seen.pid)
        )


def _owner(seen: proc.Seen, kin: Collection[Kin]) -> Kin | None:
    invocation = proc.variable(seen.pid, INVOCATION)
    for one in kin:
        if one.invocation == invocation:
            return one
    # Its environment is empty or made up, or it is a zombie and has none.
    for one in kin:
        if one.known.get(seen.pid) == seen.start or (one.main and one.main == seen.session):
            return one
    uid = proc.uid(seen.pid)
    same = [one for one in kin if one.uid is not None and one.uid == uid]
    return min(same, key=lambda one: not one.ended, default=None)


def _reap(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
