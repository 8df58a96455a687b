"""Containers as a test or a person handles them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

from lab import entering, keeper, recipe
from lab.commands import PLAIN, Done, is_locked
from lab.machine import COMMAND_TIMEOUT, Machine
from lab.places import Place
from lab.problems import LabError, LabTimeoutError
from lab.spec import Spec
from support import proc
from support.waiting import PATIENCE, until

# A boot takes less than a second; a busy machine may need many times that.
BOOT_WITHIN = 60.0
DOWN_WITHIN = 30.0
_KEEPER = Path(keeper.__file__)


class Container(Machine):
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
        stdin: bytes | str | IO[bytes] = b"",
        timeout: float = COMMAND_TIMEOUT,
    ) -> Done:
        text = stdin.encode() if isinstance(stdin, str) else stdin
        raw, source = (text, subprocess.PIPE) if isinstance(text, bytes) else (None, text)
        with entering.start(self, argv, source) as command:
            out, err = command.communicate(raw, timeout)
        texts = (part.decode("utf-8", "replace") for part in (out, err))
        return Done(tuple(argv), command.status, *texts)

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
