"""systemctl, for root's own changes: one call for many units, bounded; standard library only."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from autobot_mcp_bridge.model.errors import BridgeError

# Stopping 500 sockets takes 4 s on two loaded cores, 100 services in the full sandbox 15 s.
TIMEOUT = 120.0
AT_ONCE = 200  # units in one call: names have at most 110 characters, a command line 2 MiB
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "SYSTEMD_COLORS": "0"}


def has_systemd() -> bool:
    """sd_booted(3)."""
    return Path("/run/systemd/system").is_dir() and shutil.which("systemctl") is not None


class SystemctlError(BridgeError):
    """systemctl refused; the message has its words."""

    exit_code = 69  # EX_UNAVAILABLE


class SystemctlTimeoutError(SystemctlError):
    """It did not end in time."""


def systemctl(
    verb: str, units: Iterable[str] = (), *options: str, timeout: float = TIMEOUT
) -> None:
    """Run a verb on the units, some hundreds at a time; on none when there are none.

    Raises:
        SystemctlError: it failed, or took longer than `timeout` seconds.
    """
    names = sorted(units)
    for start in range(0, len(names), AT_ONCE):
        _run([verb, *options, "--", *names[start : start + AT_ONCE]], timeout)


def systemctl_each(verb: str, units: Iterable[str], *options: str) -> dict[str, str]:
    """The same, but a unit that cannot be had (masked, broken by a drop-in) holds up no other.

    Returns each that was refused, with systemctl's words.

    Raises:
        SystemctlError: systemctl took longer than TIMEOUT, or refused every one of several.
    """
    names = sorted(units)
    refused: dict[str, str] = {}
    for start in range(0, len(names), AT_ONCE):
        some = names[start : start + AT_ONCE]
        try:
            systemctl(verb, some, *options)
        except SystemctlTimeoutError:
            raise
        except SystemctlError:
            refused |= _refusals(verb, some, options)
    if len(refused) == len(names) > 1:
        raise SystemctlError(refused[names[0]])
    return refused


def _refusals(verb: str, names: Iterable[str], options: Iterable[str]) -> dict[str, str]:
    refused = {}
    for name in names:
        try:
            systemctl(verb, [name], *options)
        except SystemctlTimeoutError:
            raise
        except SystemctlError as error:
            refused[name] = str(error)
    return refused


def active(services: Iterable[str]) -> list[str]:
    """Those of the services that have a process or are just getting one.

    Raises:
        SystemctlError: as `systemctl`.
    """
    names = sorted(services)
    if not names:
        return []  # no name would mean all units
    words = ("--state=active,activating", "--plain", "--no-legend", "--full", "--", *names)
    return [line.split()[0] for line in run_tool("systemctl", "list-units", *words).splitlines()]


def daemon_reload() -> None:
    """Have systemd read the unit files.

    Raises:
        SystemctlError: as `systemctl`.
    """
    _run(["daemon-reload"])


def run_tool(*command: str, given: bytes = b"", timeout: float = TIMEOUT) -> str:
    """Run another program of systemd, with `given` as its stdin; what it printed.

    Raises:
        SystemctlError: it failed, is not there, or took longer than `timeout` seconds.
    """
    return _call(command, command[0], timeout, given)


def _run(words: list[str], timeout: float = TIMEOUT) -> None:
    command = ("systemctl", "--no-ask-password", *words)
    _call(command, f"systemctl {words[0]}", timeout)


def _call(command: tuple[str, ...], name: str, timeout: float, given: bytes = b"") -> str:
    try:
        done = subprocess.run(
            command,
            input=given,
            capture_output=True,
            env=ENVIRONMENT,
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError:
        raise SystemctlError(f"{command[0]} is not there: is this a systemd host?") from None
    except subprocess.TimeoutExpired:
        raise SystemctlTimeoutError(f"{name} did not end within {timeout:g} s") from None
    if done.returncode:
        text = done.stderr.decode("utf-8", "replace").strip() or f"status {done.returncode}"
        raise SystemctlError(f"{name}: {text}")
    return done.stdout.decode("utf-8", "replace")
