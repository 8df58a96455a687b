"""What the proxy is told about a server's command, from the first look to the end of an install."""

import os
import re
import shutil
from pathlib import Path

import pytest

from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.packages.commands import Packages
from support import proc
from support.registry import serving
from support.waiting import PATIENCE, eventually

INSTALL = 60.0 * PATIENCE


@pytest.fixture
def registry():
    with serving() as found:
        yield found


@pytest.fixture
async def packages(registry, need, public_path):
    need("uv")
    lines = []
    environ = {"PATH": os.environ["PATH"], "HOME": str(public_path), "PIP_CONFIG_FILE": os.devnull}
    found = Packages(
        public_path / "packages", environ={**environ, **registry.environ}, progress=lines.append
    )
    found.lines = lines
    yield found
    await found.close()


def server(name, *command, **more):
    return ServerSpec(name=name, command=command, **more)


def cause(packages, spec):
    with pytest.raises(CallError) as caught:
        packages.command(spec)
    return caught.value


async def test_a_plain_command_is_ready_after_the_first_look(packages):
    spec = server("a", "sh", "-c", "true")
    await packages.ensure([spec])

    assert packages.command(spec).argv == (shutil.which("sh"), "-c", "true")


async def test_a_missing_program_is_a_failed_install_that_names_the_searched_path(packages):
    spec = server("a", "no-such-program")
    await packages.ensure([spec])

    error = cause(packages, spec)
    assert error.cause is Cause.INSTALL_FAILED
    assert re.search("no-such-program.*searched: .*/bin", str(error))


async def test_a_command_that_is_not_understood_says_what_is_allowed(packages):
    spec = server("a", "npx", "--registry=x", "y")
    await packages.ensure([spec])

    assert "allowed is npx" in str(cause(packages, spec))


async def test_a_live_profile_runs_npx_itself(packages, registry, public_path):
    npx = public_path / "npx"
    npx.write_text("#!/bin/sh\n")
    npx.chmod(0o755)
    spec = server("a", str(npx), "-y", "x", profile="npx")
    await packages.ensure([spec])
    await packages.settled()

    assert packages.command(spec).argv == (str(npx), "-y", "x")
    assert registry.hits == []


async def test_a_live_profile_is_for_its_own_command_alone(packages):
    spec = server("a", "uvx", "x", profile="npx")
    await packages.ensure([spec])

    assert "npx is for a command that begins with npx" in str(cause(packages, spec))


async def test_a_package_is_installing_until_it_is_ready_for_every_server_of_it(packages, registry):
    registry.add_pypi("made-tool", ["1.0.0"])
    specs = [server("a", "uvx", "made-tool@1.0.0"), server("b", "uvx", "made-tool@1.0.0", "x")]
    ready = []
    packages.on_ready(lambda spec: ready.append(spec.name))
    registry.gate.clear()
    await packages.ensure(specs)

    waiting = cause(packages, specs[0])
    assert (waiting.cause, waiting.retry_after) == (Cause.INSTALLING, 5.0)
    assert ready == []
    registry.gate.set()
    await packages.settled()

    assert packages.command(specs[1]).argv[-1] == "x"
    assert sorted(ready) == ["a", "b"]
    assert [line.split()[0] for line in packages.lines].count("installed") == 1, packages.lines


async def test_a_failed_install_tells_its_cause_and_is_tried_again_when_asked(packages, registry):
    spec = server("a", "uvx", "made-tool@1.0.0")
    await packages.ensure([spec])
    await packages.settled()

    error = cause(packages, spec)
    assert error.cause is Cause.INSTALL_FAILED
    assert "made-tool" in str(error)

    registry.add_pypi("made-tool", ["1.0.0"])
    await packages.ensure([spec])
    await packages.settled()

    assert packages.command(spec).argv[-1].endswith("/bin/made-tool")


async def test_an_end_in_the_middle_of_an_install_leaves_no_process_behind(packages, registry):
    registry.gate.clear()
    specs = [server(name, "uvx", f"{name}@1.0.0") for name in ("made-a", "made-b", "made-c")]
    await packages.ensure(specs)
    await eventually(registry.asked.is_set, within=INSTALL)

    await packages.close()

    assert [pid for pid in proc.children(os.getpid()) if runs_uv(pid)] == []


def runs_uv(pid):
    # A child of uv's that died before its exec is a zombie of that name until this process ends.
    return proc.alive(pid) and Path(f"/proc/{pid}/comm").read_text().strip() == "uv"
