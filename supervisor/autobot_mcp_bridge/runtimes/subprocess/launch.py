"""Becomes a server: `python3 -I -S launch.py`, with the request on descriptor 3.

The request is read to its end of file. The answer is `+` right before exec and then the end of
file that exec makes of descriptor 3; on failure `errno step`, and this process exits with 203, as
systemd does when exec fails. It runs with the proxy's rights until it drops them, so it loads
everything before that and takes nothing from the environment, the current directory or the
server's files. Few imports: they are most of its cost (json alone would double it).
"""

# pathlib and contextlib would cost more than all else here.
# ruff: noqa: PTH102, PTH208, S606, SIM105

import _signal  # type: ignore[import-not-found]  # the enums of signal cost 3 ms
import ctypes
import os
import resource

CHANNEL = 3
EXIT_EXEC = 203
_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_SIGKILL = 9


def receive() -> list[bytes]:
    """The fields of the request: `spawn.encode` writes it."""
    data = bytearray()
    while chunk := os.read(CHANNEL, 1 << 16):
        data += chunk
    return bytes(data[:-1]).split(b"\0")


def prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def limit(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    # Never above what we were given: that would need a right that containers often lack.
    value = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (value, value))


def main() -> None:
    fields = receive()
    parent, uid, gid, open_files, argc = map(int, fields[:5])
    cwd, temporary = fields[5:7]
    argv, environment = fields[7 : 7 + argc], fields[7 + argc :]
    step = "limits"
    try:
        for name in os.listdir("/proc/self/fd"):  # what C libraries of the proxy left inheritable
            if int(name) > CHANNEL:
                try:
                    os.close(int(name))
                except OSError:
                    pass  # the listing's own descriptor
        os.set_inheritable(CHANNEL, False)
        # Python ignores these two, and an ignored signal stays ignored after exec.
        for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
            _signal.signal(number, _signal.SIG_DFL)
        os.umask(0o077)
        limit(resource.RLIMIT_NOFILE, open_files)
        limit(resource.RLIMIT_CORE, 0)
        step = "user"
        if uid >= 0:
            os.setgroups([])
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
        prctl(_PR_SET_NO_NEW_PRIVS, 1)
        # After the change of user, which clears it; the check closes the gap before it was set.
        prctl(_PR_SET_PDEATHSIG, _SIGKILL)
        if os.getppid() != parent:
            os._exit(EXIT_EXEC)
        # As the server: below its own directory a link could lead a privileged mkdir anywhere.
        step = "tmp"
        try:
            os.mkdir(temporary)
        except FileExistsError:
            pass
        step = "cwd"
        os.chdir(cwd)
        step = "exec"
        os.write(CHANNEL, b"+")
        os.execve(argv[0], argv, dict(pair.split(b"=", 1) for pair in environment))
    except OSError as error:
        os.write(CHANNEL, b"%d %s" % (error.errno or 0, step.encode()))
    os._exit(EXIT_EXEC)


if __name__ == "__main__":
    main()
