"""What /proc tells about the processes of a test."""

import os
import select
import signal
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")


def alive(pid: int) -> bool:
    """Tell whether the process runs; a zombie does not."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def end(pid: int, number: int, *, within: float) -> bool:
    """Signal exactly this process and wait for its end; whether it is gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        signal.pidfd_send_signal(descriptor, number)
        return bool(select.select([descriptor], [], [], within)[0])
    except ProcessLookupError:
        return True
    finally:
        os.close(descriptor)


def descriptors(pid: int) -> int:
    return len(list((_PROC / str(pid) / "fd").iterdir()))


def sockets(pid: int) -> int:
    """How many of its descriptors are sockets."""
    found = 0
    for entry in (_PROC / str(pid) / "fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            found += str(entry.readlink()).startswith("socket:")
    return found


def rss(pid: int) -> int:
    """Resident bytes."""
    pages = (_PROC / str(pid) / "statm").read_text(encoding="utf-8").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def forget_peak(pid: int) -> None:
    """From now on `peak` tells of what comes (proc(5), clear_refs)."""
    (_PROC / str(pid) / "clear_refs").write_text("5", encoding="ascii")


def peak(pid: int) -> int:
    """The most resident bytes that it has had."""
    status = (_PROC / str(pid) / "status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def children(pid: int) -> list[int]:
    """The direct children, zombies included."""
    found: list[int] = []
    for task in (_PROC / str(pid) / "task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, (task / "children").read_text(encoding="utf-8").split())
    return found


def outside(leader: int, inner: int) -> int:
    """The pid here of the process that has pid `inner` in the leader's pid namespace.

    Raises:
        ProcessLookupError: there is none.
    """
    namespace = (_PROC / str(leader) / "ns/pid").readlink()
    for entry in filter(lambda entry: entry.name.isdigit(), _PROC.iterdir()):
        with suppress(FileNotFoundError, ProcessLookupError):
            status = (entry / "status").read_text(encoding="utf-8", errors="replace")
            ids = status.partition("\nNSpid:")[2].partition("\n")[0].split()
            if ids[-1:] == [str(inner)] and (entry / "ns/pid").readlink() == namespace:
                return int(entry.name)
    raise ProcessLookupError(f"no process {inner} in the namespace of {leader}")


def zombies(pid: int) -> list[int]:
    return [child for child in children(pid) if not alive(child)]


def with_environment(value: str) -> list[int]:
    """The living processes whose environment holds this text."""
    wanted = value.encode()
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            if wanted in (entry / "environ").read_bytes() and alive(int(entry.name)):
                found.append(int(entry.name))
    return found


def environment(pid: int) -> dict[str, str]:
    raw = (_PROC / str(pid) / "environ").read_bytes().decode("utf-8", "surrogateescape")
    return dict(pair.split("=", 1) for pair in raw.split("\0") if "=" in pair)
