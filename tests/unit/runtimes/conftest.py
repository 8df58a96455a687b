"""The fixtures of the runtimes' tests: `state` (a directory), `runtime`, and `child`.

`child("echo")` starts tests/servers/rt_child.py in that mode and returns the process with what a
channel would do to it; whatever a test leaves is ended.
"""

import asyncio
import json
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio

from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.runtimes.base import Command
from autobot_mcp_bridge.runtimes.subprocess import SubprocessRuntime
from support import proc
from support.fakes import SERVERS, python
from support.waiting import eventually

SCRIPT = (SERVERS / "rt_child.py").read_text(encoding="utf-8")


class Child:
    """A running server, from its channel's side."""

    def __init__(self, process):
        self.process = process
        self.pid = process.pid
        self._open = {process.stdin_fd, process.stdout_fd}
        self._read = b""

    def close_stdin(self):
        self._close(self.process.stdin_fd)

    def close(self):
        self._close(self.process.stdin_fd)
        self._close(self.process.stdout_fd)

    def write(self, data):
        assert os.write(self.process.stdin_fd, data) == len(data)

    async def line(self):
        """The next line of stdout, as JSON."""

        def whole():
            with suppress(BlockingIOError):
                self._read += os.read(self.process.stdout_fd, 65536)
            return b"\n" in self._read

        await eventually(whole, what="a line of stdout")
        line, _, self._read = self._read.partition(b"\n")
        return json.loads(line)

    async def ended(self):
        async with asyncio.timeout(20):
            return await self.process.ended()

    async def stop(self, grace=0.0):
        self.close_stdin()
        async with asyncio.timeout(20 + grace):
            return await self.process.stop(grace)

    def _close(self, fd):
        if fd in self._open:
            self._open.discard(fd)
            os.close(fd)


# The simplest modes need no python, whose start is most of a test's time.
SHELL = {
    "echo": "exec cat",
    "leave": "exit $1",
    "signalled": "kill -$1 $$",
    "stubborn": "trap '' TERM; echo '\"ready\"'; while :; do sleep 600; done",
    "last_words": 'code=$1; shift; for line; do echo "$line" >&2; done; exit $code',
}


def command(mode, *words):
    words = [str(word) for word in words]
    if mode in SHELL:
        return Command(["/bin/sh", "-c", SHELL[mode], mode, *words])
    return Command([python(), "-I", "-S", "-c", SCRIPT, mode, *words])


def spec(name="child", **settings):
    return ServerSpec.model_validate({"name": name, "command": ["child"], **settings})


def pytest_asyncio_loop_factories(config, item):
    """The contract is kept on both loops; the rest does not depend on it."""
    factories = {"asyncio": asyncio.new_event_loop}
    if item.path.name == "test_contract.py":
        with suppress(ImportError):  # an extra of the package
            import uvloop

            factories["uvloop"] = uvloop.new_event_loop
    return factories


@pytest.fixture(autouse=True)
def _no_child_of_earlier_tests():
    """A runtime makes this process adopt orphans: one of an earlier test's proxies may lie here."""
    for pid in proc.zombies(os.getpid()):
        os.waitpid(pid, 0)


@pytest.fixture
def state():
    """A state directory that every uid can reach, unlike tmp_path."""
    root = Path(tempfile.mkdtemp(prefix="mcp-bridge-runtime-"))
    root.chmod(0o711)
    yield root / "state"
    shutil.rmtree(root)


@pytest.fixture
def logged():
    """The lines of stderr that were logged, as pairs of instance and line."""
    return []


@pytest_asyncio.fixture
async def runtime(state, logged):
    runtime = SubprocessRuntime(state, log=lambda *pair: logged.append(pair))
    yield runtime
    await runtime.close()


@pytest_asyncio.fixture
async def child(runtime):
    children = []

    async def start(mode, *words, **settings):
        started = await runtime.start(spec(**settings), command(mode, *words))
        children.append(Child(started))
        return children[-1]

    yield start
    for each in children:
        await each.stop()
        each.close()
