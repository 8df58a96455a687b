"""A virtual machine with a kernel of its own: for what containers here cannot show.

That is cgroup v2 with all its controllers, and what belongs to a whole kernel: its modules, its
settings, its disks. The processor is emulated, which is about twelve times slower.

It ends with this process, however that ends: the kernel kills it then (prctl(2), PR_SET_PDEATHSIG).
"""

import shlex
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Self

from lab import qemu
from lab.commands import PLAIN, Done, tool
from lab.machine import COMMAND_TIMEOUT, Machine
from lab.problems import LabError, LabTimeoutError
from lab.vm_image import Image
from lab.vm_recipe import READY
from support.waiting import PATIENCE, until

# 18 s alone, 57 s on a busy machine.
BOOT_WITHIN = 240.0
LOGIN_WITHIN = 60.0
END_WITHIN = 10.0
# What is usual elsewhere takes so many times longer.
SLOWER = 4
TIMED_OUT = 124  # as timeout(1) says it
# Whatever starts it, it does not outlive this process.
_MORTAL = ("setpriv", "--pdeathsig", "KILL", "--")


class Vm(Machine):
    """One machine; what it writes to its disks is gone at its end.

    Args:
        image: what it boots.
        disks: further disks, /dev/vdb and so on.
    """

    def __init__(self, image: Image, disks: Sequence[Path] = ()) -> None:
        self._image = image
        self._disks = disks
        self._folder = Path(tempfile.mkdtemp(prefix="vm-"))
        self._console = self._folder / "console.log"
        self._control = self._folder / "ssh"
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        """Boot it.

        Raises:
            LabError: it ended instead, or nobody is let in; the message shows its console.
            LabTimeoutError: it did not boot in time.
        """
        try:
            self._boot()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def run(
        self,
        *argv: str,
        stdin: bytes | str | IO[bytes] = b"",
        timeout: float = COMMAND_TIMEOUT,
    ) -> Done:
        seconds = timeout * SLOWER * PATIENCE
        words = ("timeout", "--kill-after=5", f"{seconds:g}", *argv)
        text = stdin.encode() if isinstance(stdin, str) else stdin
        fed = {"input": text} if isinstance(text, bytes) else {"stdin": text}
        try:
            done = subprocess.run(
                self._ssh("vm", shlex.join(words)),
                **fed,
                env=PLAIN,
                capture_output=True,
                timeout=seconds + LOGIN_WITHIN * PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise LabTimeoutError(f"not done, nor ended: {shlex.join(argv)}") from error
        out, err = (part.decode("utf-8", "replace") for part in (done.stdout, done.stderr))
        if self._ended():
            raise LabError(f"the machine has ended\n{self._tail()}")
        if done.returncode == TIMED_OUT:
            raise LabTimeoutError(f"not done within {seconds:g} s: {shlex.join(argv)}\n{err}")
        return Done(argv, done.returncode, out, err)

    def forward(self, port: int) -> Path:
        """Return a Unix socket of this host, behind which is that port of the machine's loopback.

        It blocks for a moment when the port is asked for the first time.

        Raises:
            LabError: ssh refuses.
        """
        path = self._folder / f"port-{port}"
        if path.exists():
            return path
        tool(*self._ssh("-O", "forward", "-L", f"{path}:127.0.0.1:{port}", "vm")).checked()
        return path

    def end(self) -> None:
        """End it as a power cut does, and remove what it wrote."""
        for process in reversed(self._running):
            process.kill()
            process.wait(END_WITHIN * PATIENCE)
        self._running.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _boot(self) -> None:
        port = _free_port()
        self._start("qemu", *qemu.words(self._image, self._disks, self._console, port))
        if not until(lambda: self._ended() or READY in self._said(), within=BOOT_WITHIN):
            raise LabTimeoutError(f"it has not booted in {BOOT_WITHIN:g} s\n{self._tail()}")
        if self._ended():
            raise LabError(f"it has ended instead of booting\n{self._tail()}")
        settings = {
            "IdentityFile": self._image.key,
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": "/dev/null",
            "LogLevel": "ERROR",
            "ConnectTimeout": f"{LOGIN_WITHIN * PATIENCE:.0f}",
        }
        options = [word for key, text in settings.items() for word in ("-o", f"{key}={text}")]
        where = ("-p", str(port), "-l", "root", "127.0.0.1")
        # All commands go through this one connection: a login of its own would take each a second.
        self._start("login", *self._ssh("-M", "-N", *options, *where))
        if not until(lambda: self._ended() or self._control.exists(), within=LOGIN_WITHIN):
            raise LabTimeoutError(f"sshd does not let us in\n{self._tail()}")
        if self._ended():
            raise LabError(f"sshd does not let us in\n{self._tail()}")

    def _start(self, log: str, *words: str) -> None:
        with (self._folder / f"{log}.log").open("wb") as file:
            started = subprocess.Popen(
                [*_MORTAL, *words],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                # The changes to its disks, until it ends, are a file there without a name.
                env={**PLAIN, "TMPDIR": str(self._folder)},
            )
        self._running.append(started)

    def _ssh(self, *words: str) -> list[str]:
        return ["ssh", "-F", "none", "-S", str(self._control), *words]

    def _ended(self) -> bool:
        return any(process.poll() is not None for process in self._running)

    def _said(self) -> str:
        try:
            return self._console.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def _tail(self) -> str:
        logs = [path.read_text(errors="replace") for path in self._folder.glob("*.log")]
        return "\n".join(log[-2000:] for log in logs if log)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as made:
        number: int = made.getsockname()[1]
        return number
