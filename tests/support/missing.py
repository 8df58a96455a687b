"""What a test needs from outside: had, or said to be missing, never silently left out.

`need("clients")` in a test asks for one of the things of PROVIDERS. When it cannot be had, the
test fails with CI=true, and is reported as not run, with the reason, on a developer's machine;
the end of the run lists every reason with its tests.
"""

import importlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from clients import setup, venvs
from connect import agents
from issuer import setup as issuer
from lab import host, qemu, recipe
from lab.base import base
from lab.places import default_cache
from lab.problems import LabError
from lab.vm_image import image
from rules.tree import ROOT
from support.redis_server import redis_server
from support.unpacked import CannotFetchError, program

PREFIX = "could not run: "
# A registry that does not answer a HEAD for one small package in this time is taken as missing.
REGISTRY_TIMEOUT = 20.0


class MissingError(Exception):
    """Something outside is not here; the message says what and why."""


def _clients() -> Path:
    try:
        return setup.install()
    except setup.CannotInstallError as error:
        raise MissingError(f"the real clients: {error}") from error


def _agents() -> Path:
    if shutil.which("node") is None:
        raise MissingError("the program node: it is not on PATH")
    try:
        return agents.install()
    except setup.CannotInstallError as error:
        raise MissingError(f"Claude Code, Codex and Gemini CLI: {error}") from error


def _python_client(name: str) -> Callable[[], object]:
    def find() -> Path:
        try:
            return venvs.install(name)
        except setup.CannotInstallError as error:
            raise MissingError(f"the client {name}: {error}") from error

    return find


def _issuer() -> Path:
    if shutil.which("node") is None:
        raise MissingError("the program node: it is not on PATH")
    try:
        return issuer.install()
    except setup.CannotInstallError as error:
        raise MissingError(f"the OAuth issuer: {error}") from error


def _node22() -> Path:
    _clients()
    return setup.node()


def _npm() -> Path:
    try:
        return Path(setup.npm())
    except setup.CannotInstallError as error:
        raise MissingError(str(error)) from error


def _root() -> None:
    if os.geteuid() != 0:
        raise MissingError("root: these tests run as an ordinary user")


def _lab() -> None:
    why = host.unavailable(default_cache())
    if why is not None:
        raise MissingError(f"the lab of systemd containers: {why}")
    for suite in recipe.SUITES:
        try:
            base(default_cache(), suite)
        except LabError as error:
            last = str(error).strip().splitlines()[-1]
            raise MissingError(f"the lab of systemd containers: no {suite}: {last}") from error


def _vm() -> None:
    if (why := qemu.unavailable()) is not None:
        raise MissingError(f"the virtual machine: {why}")
    try:
        image(default_cache())
    except LabError as error:
        last = str(error).strip().splitlines()[-1]
        raise MissingError(f"the virtual machine: no image: {last}") from error


def _npm_registry() -> None:
    command = [str(_npm()), "view", "mcp-remote", "version", "--loglevel=error"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            env=dict(os.environ),
            capture_output=True,
            timeout=REGISTRY_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise MissingError("the npm registry: no answer in time") from None
    if done.returncode != 0:
        raise MissingError("the npm registry: npm cannot read from it")


def _ansible() -> Path:
    own = ROOT / ".venv-ansible" / "bin" / "ansible-playbook"
    found = str(own) if own.exists() else shutil.which("ansible-playbook")
    if found is None:
        raise MissingError("ansible: `make ansible` installs it")
    return Path(found)


def _unpacked(name: str) -> Callable[[], object]:
    def find() -> Path:
        try:
            return program(name)
        except CannotFetchError as error:
            raise MissingError(f"{name}: {error}") from error

    return find


def _redis() -> object:
    try:
        return redis_server()
    except CannotFetchError as error:
        raise MissingError(f"redis-server: {error}") from error


def _module(name: str) -> Callable[[], object]:
    def find() -> object:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            raise MissingError(f"the library {name}: it is not installed") from None

    return find


PROVIDERS: dict[str, Callable[[], object]] = {
    "agents": _agents,
    "ansible": _ansible,
    "caddy": _unpacked("caddy"),
    "clients": _clients,
    "dbus_fast": _module("dbus_fast"),
    "dbus_next": _module("dbus_next"),
    "fastmcp": _python_client("fastmcp"),
    "issuer": _issuer,
    "lab": _lab,
    "mcp-proxy": _python_client("mcp-proxy"),
    "nginx": _unpacked("nginx"),
    "node22": _node22,
    "npm": _npm,
    "npm registry": _npm_registry,
    "promtool": _unpacked("promtool"),
    "redis": _redis,
    "root": _root,
    "vm": _vm,
}


def _program(name: str) -> Callable[[], object]:
    def find() -> Path:
        found = shutil.which(name)
        if found is None:
            raise MissingError(f"the program {name}: it is not on PATH")
        return Path(found)

    return find


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


class Needs:
    """Asks for each thing once per run and remembers the answer."""

    def __init__(self) -> None:
        self._had: dict[str, object] = {}
        self._missing: dict[str, str] = {}

    def __call__(self, name: str) -> object:
        """Return the thing: a path, for most; a name outside PROVIDERS is a program on PATH."""
        if name not in self._had and name not in self._missing:
            try:
                self._had[name] = PROVIDERS.get(name, _program(name))()
            except MissingError as missing:
                self._missing[name] = str(missing)
        if name in self._missing:
            report = pytest.fail if in_ci() else pytest.skip
            report(PREFIX + self._missing[name])
        return self._had[name]


@pytest.fixture(scope="session")
def need() -> Needs:
    return Needs()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons: dict[str, list[str]] = {}
    for report in (
        *terminalreporter.stats.get("skipped", ()),
        *terminalreporter.stats.get("failed", ()),
        *terminalreporter.stats.get("error", ()),
    ):
        text = _reason(report)
        if PREFIX in text:
            why = text.split(PREFIX, 1)[1].splitlines()[0].strip("'\") ")
            reasons.setdefault(why, []).append(report.nodeid)
    if not reasons:
        return
    terminalreporter.section("could not run")
    for why, tests in sorted(reasons.items()):
        terminalreporter.write_line(f"{why} ({len(tests)} tests)")
        for test in tests:
            terminalreporter.write_line(f"    {test}")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message if crash is not None else ""
