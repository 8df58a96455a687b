"""How many calls a proxy had begun and not recorded when it was killed.

Two counters and a line's number in a page of memory that outlives the process: a SIGKILL takes the
lines of the calls that were open with it, and the next proxy says how many. The page is a file in
/run, so a store to it waits for no disk (0.3 us, measured), and a boot forgets it.
"""

import mmap
import os
import struct
from pathlib import Path

_LAYOUT = struct.Struct("<QQQ")


class OpenCalls:
    """The counters of this process, in the place of those of the one before.

    Attributes:
        left: of the process before: calls begun, calls recorded, its last line's number.
        seq: the number of this one's last line.
    """

    def __init__(self, path: Path) -> None:
        """Raises OSError if the file cannot be made."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(path, flags, 0o600)
        try:
            if os.fstat(fd).st_size != mmap.PAGESIZE:
                os.ftruncate(fd, 0)
                # Written, not only reserved: a store to a page that no disk has room for is SIGBUS.
                os.write(fd, bytes(mmap.PAGESIZE))
            self._page = mmap.mmap(fd, mmap.PAGESIZE)
        finally:
            os.close(fd)
        self.left: tuple[int, int, int] = _LAYOUT.unpack_from(self._page)
        self._begun = self._recorded = self.seq = 0
        self._store()

    def unrecorded(self, seq: int) -> int:
        """Calls of the process before without a line, where the chain has come to this number.

        Its last lines may be in the file although it was killed before it counted them.
        """
        begun, recorded, counted = self.left
        return max(0, begun - recorded - max(0, seq - counted)) if counted <= seq else 0

    def begin(self) -> None:
        self._begun += 1
        self._store()

    def record(self, calls: int, seq: int) -> None:
        """So many have their lines, the last of which has this number."""
        self._recorded += calls
        self.seq = seq
        self._store()

    def _store(self) -> None:
        _LAYOUT.pack_into(self._page, 0, self._begun, self._recorded, self.seq)

    def close(self) -> None:
        self._page.close()
