"""Containers as a test or a person handles them."""

import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from lab import entering, keeper, recipe
from lab.commands import PLAIN, Done, is_locked
from lab.places import Place
from lab.problems import LabError, LabTimeoutError
from lab.spec import Spec
from support import proc
from support.waiting import PATIENCE, until

# A boot takes less than a second; a busy machine may need many times that.
BOOT_WITHIN = 60.0
DOWN_WITHIN = 30.0
# A command that a test runs inside, unless it says otherwise.
COMMAND_TIMEOUT = 30.0
_KEEPER = Path(keeper.__file__)


class Container:
    """One container, which runs or does not: everything is read from its files at each call."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._keeper: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"<Container {self.place.name} of lab {self.place.lab.id}>"

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def spec(self) -> Spec:
        return Spec.read(self.place)

    @property
    def version(self) -> int:
        """The version of its systemd."""
        return recipe.SUITES[self.spec.suite]

    @property
    def is_up(self) -> bool:
        return is_locked(self.place.alive)

    def state(self) -> keeper.State | None:
        """Return what the keeper wrote last; None when there is no keeper."""
        if not self.is_up or not self.place.state.exists():
            return None
        return keeper.State(**json.loads(self.place.state.read_text(encoding="utf-8")))

    def start(self) -> None:
        """Start its keeper and wait until it has booted.

        Raises:
            LabError: it ended instead; the message shows its console.
            LabTimeoutError: it did neither.
        """
        self.place.state.unlink(missing_ok=True)
        patience = {"MCP_BRIDGE_TEST_PATIENCE": str(PATIENCE)}
        lab = self.place.lab
        with self.place.console.open("ab") as console:
            self._keeper = subprocess.Popen(
                [sys.executable, str(_KEEPER), str(lab.cache), lab.id, self.name],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                env={**PLAIN, **patience},
                cwd="/",
                start_new_session=True,
            )
        self._await_boot(1)

    def _await_boot(self, number: int) -> None:
        def booted() -> bool | None:
            if self._keeper is not None and self._keeper.poll() is not None:
                return True
            state = self.state()
            return state is not None and state.boots >= number and state.ready

        if not until(booted, within=BOOT_WITHIN):
            raise LabTimeoutError(f"{self.name} has not booted in {BOOT_WITHIN:g} s{self._tail()}")
        if self.state() is None:
            raise LabError(f"{self.name} has ended{self._tail()}")

    def _tail(self) -> str:
        return "\n" + self.place.console.read_text(encoding="utf-8", errors="replace")[-3000:]

    def reboot(self) -> None:
        """Boot it again, with its files.

        Raises:
            LabError: it is not up, or does not come back.
        """
        state = self._running()
        # systemd(1): starts reboot.target. `systemctl reboot` would be a process in there whose
        # parent is outside; when it is still there as the others end, systemd-shutdown is not
        # told of its end and looks again only after 10 s.
        os.kill(state.leader, signal.SIGRTMIN + 5)
        self._await_boot(state.boots + 1)

    def _running(self) -> keeper.State:
        state = self.state()
        if state is None or not state.ready:
            raise LabError(f"{self.name} is not up")
        return state

    def run(
        self,
        *argv: str,
        stdin: bytes | str = b"",
        timeout: float = COMMAND_TIMEOUT,
    ) -> Done:
        """Run a command in it as root.

        Raises:
            LabError: it is not up.
            LabTimeoutError: the command did not end in time; by now it has.
        """
        raw = stdin.encode() if isinstance(stdin, str) else stdin
        with entering.start(self, argv, subprocess.PIPE) as command:
            out, err = command.communicate(raw, timeout)
        texts = (part.decode("utf-8", "replace") for part in (out, err))
        return Done(tuple(argv), command.status, *texts)

    def check(self, *argv: str, stdin: bytes | str = b"", timeout: float = COMMAND_TIMEOUT) -> str:
        """Run a command that must succeed and return what it printed.

        Raises:
            LabError: it is not up, or the command failed.
        """
        return self.run(*argv, stdin=stdin, timeout=timeout).checked().out

    def copy(self, source: Path, target: str, *, timeout: float = COMMAND_TIMEOUT) -> None:
        """Copy a file or a directory in; it belongs to root there, and is called `target`."""
        with tempfile.TemporaryFile() as packed:
            with tarfile.open(fileobj=packed, mode="w") as archive:
                archive.add(source, target.lstrip("/"), filter=_of_root)
            packed.seek(0)
            words = ("tar", "-xf", "-", "-C", "/")
            with entering.start(self, words, packed) as command:
                out, err = command.communicate(None, timeout)
        Done(words, command.status, out.decode(), err.decode()).checked()

    def write(self, target: str, text: str, mode: int = 0o644) -> None:
        """Write a file in it, whose directory is made if it is not there."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "file"
            file.write_text(text, encoding="utf-8")
            file.chmod(mode)
            self.copy(file, target)

    def down(self) -> None:
        """End it, whatever it does, and remove everything of it.

        Raises:
            LabTimeoutError: its keeper does not end.
        """
        # A keeper that has just started has not written its state yet.
        until(lambda: not self.is_up or self.state(), within=DOWN_WITHIN)
        state = self.state()
        if state is not None:
            within = DOWN_WITHIN * PATIENCE
            if not proc.end(state.keeper, signal.SIGTERM, within=within):
                raise LabTimeoutError(f"keeper {state.keeper} does not end")
        if self._keeper is not None:
            self._keeper.wait(DOWN_WITHIN * PATIENCE)
        keeper.clean(self.place)
        keeper.forget(self.place)


def _of_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member
