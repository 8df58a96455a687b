"""Run the public conformance suite's scenarios for servers against one URL, and read what it found.

The suite knows two frozen sets of requirements; each runs on the wire of its own revision. What a
set does not score (extensions, scenarios newer than the revision) runs and is not counted.
"""

import asyncio
import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from clients import setup
from clients.drivers import end
from conformance.forward import Forwarder
from support.waiting import PATIENCE
from support.wire import Dial

HANDSHAKE = "2025-11-25"
MODERN = "2026-07-28"
REVISIONS = (HANDSHAKE, MODERN)
PACKAGE = "node_modules/@modelcontextprotocol/conformance"
SCENARIO_TIMEOUT = 30  # seconds of one scenario; each needs less than one
RUN_TIMEOUT = 90.0 * PATIENCE  # seconds of one revision's run; it needs about five
SUMMARY = re.compile(r"^[✓✗] (\S+): (\d+) passed, (\d+) failed", re.MULTILINE)
MESSAGE_LENGTH = 300  # characters that are kept of what the suite says of a failure


class SuiteError(Exception):
    """The suite did not run; the message is the end of what it said."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What one scenario came to; it passes with at least one check and none that fails."""

    name: str
    scored: bool
    passed: int
    failures: tuple[str, ...]

    @property
    def passes(self) -> bool:
        return self.passed > 0 and not self.failures


@dataclass(frozen=True, slots=True)
class Report:
    revision: str
    scenarios: tuple[Scenario, ...]

    @property
    def scored(self) -> tuple[Scenario, ...]:
        return tuple(scenario for scenario in self.scenarios if scenario.scored)

    @property
    def passed(self) -> int:
        return sum(scenario.passes for scenario in self.scored)

    @property
    def failing(self) -> tuple[Scenario, ...]:
        """The scored scenarios that do not pass."""
        return tuple(scenario for scenario in self.scored if not scenario.passes)


def root() -> Path:
    return setup.home() / PACKAGE


def requirements(revision: str) -> dict[str, bool]:
    """The set's scenarios for servers: whether each is scored."""
    text = (root() / "requirements" / f"{revision}.yaml").read_text(encoding="utf-8")
    document = yaml.safe_load(text)
    unscored = [
        row["scenario"] for row in document.get("not_scored", ()) if row.get("leg") == "server"
    ]
    return {**dict.fromkeys(document["server"], True), **dict.fromkeys(unscored, False)}


async def run(
    url: str, headers: Mapping[str, str], revision: str, dial: Dial | None = None
) -> Report:
    """Run one revision's set.

    Raises:
        SuiteError: it did not run to its end within RUN_TIMEOUT.
    """
    with tempfile.TemporaryDirectory(prefix="mcp-conformance-") as name:
        folder = Path(name)
        async with Forwarder(url, headers, dial) as forwarder:
            said = await _output(forwarder.url, revision, folder)
        return await asyncio.to_thread(_read, revision, folder, said)


async def _output(url: str, revision: str, folder: Path) -> str:
    words = ["server", "--url", url, "--requirements", revision, "-o", str(folder)]
    words += ["--timeout", str(SCENARIO_TIMEOUT * 1000)]
    process = await asyncio.create_subprocess_exec(
        *(str(setup.node()), str(root() / "dist" / "index.js"), *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={"PATH": str(setup.node().parent), "HOME": str(folder), "NO_COLOR": "1"},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(RUN_TIMEOUT):
            said, _ = await process.communicate()
    except TimeoutError:
        raise SuiteError(f"not done after {RUN_TIMEOUT:.0f} s") from None
    finally:
        await end(process)
    return said.decode(errors="replace")


def _read(revision: str, folder: Path, said: str) -> Report:
    summary = {match[1]: (int(match[2]), int(match[3])) for match in SUMMARY.finditer(said)}
    if not summary:
        raise SuiteError(said[-2000:])
    found = [
        _scenario(name, scored, folder, summary.get(name, (0, 0)))
        for name, scored in requirements(revision).items()
    ]
    return Report(revision, tuple(found))


def _scenario(name: str, scored: bool, folder: Path, counted: tuple[int, int]) -> Scenario:
    checks: list[dict[str, Any]] = []
    for made in sorted(folder.glob(f"server-{name}-2*/checks.json"))[-1:]:
        checks = json.loads(made.read_text(encoding="utf-8"))
    failures = [
        f"{check['id']}: {(check.get('errorMessage') or '')[:MESSAGE_LENGTH]}"
        for check in checks
        if check.get("status") == "FAILURE"
    ]
    passed, failed = counted
    if failed and not failures:
        failures = ["the scenario itself failed"]
    return Scenario(name, scored, passed, tuple(failures))
