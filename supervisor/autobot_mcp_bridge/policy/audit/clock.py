"""The times of the lines."""

import time


class Clock:
    """RFC 3339 in UTC with milliseconds; what changes once a second is made once a second."""

    def __init__(self) -> None:
        self._second = -1
        self._date = ""

    def stamp(self) -> str:
        """The time now, as `2026-11-30T12:00:00.123Z`."""
        second, rest = divmod(time.time_ns(), 1_000_000_000)
        if second != self._second:
            self._second = second
            self._date = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._date}.{rest // 1_000_000:03d}Z"
