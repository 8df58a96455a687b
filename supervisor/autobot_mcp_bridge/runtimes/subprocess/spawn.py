"""One start, from definition to running process. Blocking: it runs in a thread of the runtime.

The thread must live as long as the server: PR_SET_PDEATHSIG fires at the end of the thread that
made the child, not only at the end of the process.
"""

import errno
import os
import signal
import socket
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.runtimes.subprocess.environment import INVOCATION
from autobot_mcp_bridge.runtimes.subprocess.identity import Home, refused
from autobot_mcp_bridge.runtimes.subprocess.kin import Kin, Mains

LAUNCHER = Path(__file__).with_name("launch.py")
# The launcher's whole life: a python start (15 ms on an idle core) and a few system calls.
LAUNCH_TIMEOUT = 20.0
_RESET = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


@dataclass(frozen=True, slots=True)
class Order:
    """What to start, with everything decided."""

    argv: Sequence[str]
    env: Mapping[str, str]
    home: Home
    cwd: Path
    open_files: int
    kin: Kin


@dataclass(frozen=True, slots=True)
class Spawned:
    """A running server; its descriptors have no other owner yet."""

    order: Order
    pid: int
    pidfd: int
    stdin_fd: int
    stdout_fd: int
    stderr_fd: int


def spawn(order: Order, mains: Mains) -> Spawned:
    """Start the server and wait until exec has succeeded.

    Raises:
        StartError: it could not be started; nothing is left behind.
    """
    with ExitStack() as on_error, ExitStack() as always:
        try:
            pairs = []
            for child_end in (0, 1, 1):
                ends = os.pipe2(os.O_CLOEXEC)
                always.callback(os.close, ends[child_end])
                on_error.callback(os.close, ends[1 - child_end])
                os.set_blocking(ends[1 - child_end], False)
                pairs.append(ends)
            ours, theirs = socket.socketpair()
            always.enter_context(ours)
            with theirs:
                pid = _fork(order, mains, [pairs[0][0], pairs[1][1], pairs[2][1], theirs.fileno()])
        except OSError as error:
            raise refused(f"no process for it: {error.strerror}") from error
        pidfd = os.pidfd_open(pid)
        on_error.callback(os.close, pidfd)
        on_error.callback(_discard, order.kin.invocation, mains)
        _converse(order, ours)
        on_error.pop_all()
        return Spawned(order, pid, pidfd, pairs[0][1], pairs[1][0], pairs[2][0])


def _fork(order: Order, mains: Mains, fds: Sequence[int]) -> int:
    argv = [sys.executable, "-I", "-S", str(LAUNCHER)]
    with mains.lock:
        pid = os.posix_spawn(
            argv[0],
            argv,
            # Nothing else: this python still has our rights, and the definition could name
            # LD_LIBRARY_PATH. The invocation tells the search for strays whose process this is.
            {INVOCATION: order.kin.invocation},
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(fds)],
            setsid=True,
            setsigmask=(),
            setsigdef=_RESET,
        )
        mains.pids[order.kin.invocation] = pid
        order.kin.main = pid
    return pid


def _discard(invocation: str, mains: Mains) -> None:
    pid = mains.pids[invocation]
    os.kill(pid, signal.SIGKILL)  # our child and not yet reaped: the pid is certainly its own
    os.waitpid(pid, 0)
    del mains.pids[invocation]


def encode(order: Order) -> bytes:
    """The request as the launcher reads it; no field can hold a NUL."""
    home = order.home
    fields = [
        os.getpid(),
        -1 if home.uid is None else home.uid,
        -1 if home.gid is None else home.gid,
        order.open_files,
        len(order.argv),
        order.cwd,
        home.path / "tmp",
        *order.argv,
        *(f"{name}={value}" for name, value in order.env.items()),
    ]
    return b"".join(os.fsencode(str(field)) + b"\0" for field in fields)


def _converse(order: Order, channel: socket.socket) -> None:
    channel.settimeout(LAUNCH_TIMEOUT)
    answer = b""
    try:
        channel.sendall(encode(order))
        channel.shutdown(socket.SHUT_WR)
        while chunk := channel.recv(256):
            answer += chunk
    except TimeoutError:
        raise refused(f"it was not there after {LAUNCH_TIMEOUT:.0f} s") from None
    except OSError as error:
        raise refused(f"its launcher ended: {error.strerror}") from error
    failure = answer.removeprefix(b"+").decode()
    if failure:
        code, _, step = failure.partition(" ")
        raise refused(_explain(order, int(code), step))
    if not answer:
        raise refused("its launcher ended before it was there")


def _explain(order: Order, code: int, step: str) -> str:
    why = os.strerror(code)
    path = {"exec": Path(order.argv[0]), "cwd": order.cwd, "tmp": order.home.path}.get(step)
    if path is None:
        return f"{step}: {why}"
    uid = order.home.uid
    if code == errno.EACCES and uid is not None:
        closed = next((p for p in reversed(path.parents) if not _passable(p, uid)), None)
        if closed is not None:
            return f"{path}: {why}; {closed} is closed to its uid {uid}: chmod o+x {closed}"
        why = f"{why} (it runs as uid {uid})"
    if code == errno.ENOENT and step == "exec" and path.exists():
        why = "the interpreter in its first line does not exist"
    return f"{path}: {why}"


def _passable(path: Path, uid: int) -> bool:
    found = path.stat()
    return bool(found.st_mode & stat.S_IXOTH) or found.st_uid == uid
