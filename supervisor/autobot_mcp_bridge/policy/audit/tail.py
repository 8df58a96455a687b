"""The last line of a file, however large the file is. Blocks."""

import os
from pathlib import Path

# No line is longer: arguments are bounded (redaction.py), and so is all else in it.
LONGEST_LINE = 256 << 10


def end_of_last_line(fd: int) -> int:
    """The offset behind the last newline; 0 without one."""
    end = os.fstat(fd).st_size
    while end > 0:
        begin = max(0, end - LONGEST_LINE)
        at = os.pread(fd, end - begin, begin).rfind(b"\n")
        if at >= 0:
            return begin + at + 1
        end = begin
    return 0


def last_line(fd: int) -> bytes | None:
    """The last line that a newline ends, without it; None where there is none."""
    end = end_of_last_line(fd)
    begin = max(0, end - LONGEST_LINE)
    return os.pread(fd, end - begin, begin).rstrip(b"\n").rpartition(b"\n")[2] or None


def last_line_of(path: Path) -> bytes | None:
    """The same of a file by its name. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        return last_line(fd)
    finally:
        os.close(fd)
