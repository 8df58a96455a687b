"""What an instance's unit starts: hand the server's pipes to the proxy, then become the server.

    python3 -I -S launch.py PROGRAM [ARGUMENT...]

Descriptor 3 is the listening socket (sd_listen_fds(3)). One connection gets two pipe ends
(SCM_RIGHTS, unix(7)), the one to write to first, with the line {"invocation": "..."}. Its end of
file tells that the server runs, a line {"error": "..."} that it does not. Nothing of this stays.
"""

import _signal  # type: ignore[import-not-found]  # the enums of signal and socket cost 12 ms
import _socket
import array
import os
import sys
import time

WAIT = 30.0  # seconds for a live connection; a unit started by hand has none yet
SEND_WAIT = 5.0  # seconds for a peer that takes nothing
EXIT_EXEC = 203  # systemd.exec(5), "Process Exit Codes"
# The unit's names for the server's variables: a plain LD_PRELOAD would act on ExecStopPost=+, too.
PREFIX = b"MCP_BRIDGE_ENV_"


def accept(listener: _socket.socket) -> _socket.socket | None:
    """The first connection that somebody still holds, served; None when there is none in time."""
    deadline = time.monotonic() + WAIT
    while (left := deadline - time.monotonic()) > 0:
        try:
            listener.settimeout(left)
            connection = _socket.socket(fileno=listener._accept()[0])  # type: ignore[attr-defined]
            try:
                gone = not connection.recv(1, _socket.MSG_PEEK | _socket.MSG_DONTWAIT)
            except BlockingIOError:
                gone = False  # nothing said and not closed: the proxy waits
            if not gone:
                hand_over(connection)
                return connection
        except OSError:
            continue  # the time is over, or the peer has gone meanwhile
    return None


def hand_over(connection: _socket.socket) -> None:
    """Make the pipes and keep the server's ends as 0 and 1, which are not pipes yet."""
    (stdin, theirs_in), (theirs_out, stdout) = os.pipe(), os.pipe()
    hello = b'{"invocation": "%s"}\n' % os.environb.get(b"INVOCATION_ID", b"")
    ends = array.array("i", (theirs_in, theirs_out))
    connection.settimeout(SEND_WAIT)
    try:
        connection.sendmsg([hello], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, ends)])
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
    finally:
        for descriptor in (stdin, theirs_in, theirs_out, stdout):
            os.close(descriptor)


def environment() -> dict[bytes, bytes]:
    """From nothing: three of our own, what the unit lists, a variable for each credential."""
    given = os.environb
    found = {name: given[name] for name in (b"PATH", b"HOME", b"LANG") if name in given}
    found |= {k.removeprefix(PREFIX): v for k, v in given.items() if k.startswith(PREFIX)}
    directory = given.get(b"CREDENTIALS_DIRECTORY", b"")
    for name in os.listdir(directory) if directory else ():  # NAME, or NAME.file: its path
        with open(path := os.path.join(directory, name), "rb") as file:  # an editor's newline goes
            found[name.split(b".")[0]] = path if b"." in name else file.read().removesuffix(b"\n")
    return found


def main() -> None:
    while (spare := os.open("/dev/null", os.O_RDWR)) < 3:
        os.set_inheritable(spare, True)  # so that no pipe is 0, 1 or 2 by itself
    os.closerange(4, os.sysconf("SC_OPEN_MAX"))
    listener = _socket.socket(fileno=3)
    os.set_inheritable(3, False)
    if (connection := accept(listener)) is None:
        return
    try:
        variables = environment()
        for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
            _signal.signal(number, _signal.SIG_DFL)  # Python ignores them, exec would keep that
        os.execve(sys.argv[1], sys.argv[1:], variables)
    except (OSError, ValueError, IndexError) as error:
        text = f"{sys.argv[1:2]}: cannot be started: {error}"
        print(text, file=sys.stderr)
        # Not by json, which Debian's python3-minimal lacks: it may be all that an image has.
        said = ascii(text)[1:-1].replace("\\", "\\\\").replace('"', '\\"')
        connection.send(f'{{"error": "{said}"}}\n'.encode(), _socket.MSG_NOSIGNAL)
    finally:
        os._exit(EXIT_EXEC)


main()
