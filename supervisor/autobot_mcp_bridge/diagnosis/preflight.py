"""What is known without starting anything: the definition, its unit, the proxy, the host."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.config import refused
from autobot_mcp_bridge.config.accepted import AcceptedServer
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.diagnosis import needs
from autobot_mcp_bridge.diagnosis.check import Check, Level, fail, ok, warn
from autobot_mcp_bridge.diagnosis.original import Original
from autobot_mcp_bridge.model.errors import Cause
from autobot_mcp_bridge.model.finding import Finding
from autobot_mcp_bridge.model.states import State
from autobot_mcp_bridge.units.host.static import FILES, PORTS, PROXY, WATCHES
from autobot_mcp_bridge.units.instances import service_of, socket_of
from autobot_mcp_bridge.units.manager import Manager, UnitFacts
from autobot_mcp_bridge.units.packages.job import InstallError
from autobot_mcp_bridge.units.packages.specs import parse_command

# States of /status in which a call is refused, though the server may be able to start.
_HELD = {
    State.STOPPED: (Cause.STOPPED, "is stopped by the operator", "mcp-bridge start {}"),
    State.BROKEN: (Cause.BREAKER_OPEN, "is held back by its open breaker", "mcp-bridge reset {}"),
}


@dataclass(slots=True)
class Preflight:
    """All checks of one server, in their order.

    Attributes:
        row: what the proxy says of the server; None: it does not answer, or does not know it.
        runs: whether the server itself runs at the time.
    """

    places: Places
    manager: Manager
    row: Mapping[str, Any] | None
    checks: list[Check] = field(default_factory=list)
    runs: bool = False

    def run(self, instance: str, server: AcceptedServer | None) -> Original | Check:
        """Look at everything; the unit to try, or the check that tells why it cannot start. Blocks.

        Raises:
            SystemctlError: systemd does not answer.
        """
        self.checks += needs.guarded("units", self._host())
        if server is None:
            return self._only(self._not_in_force(instance))
        if (check := _state(server)) is not None:
            return self._only(check)
        if server.refused:
            text = f"what the files say is not in force, what was before is: {server.refused}"
            self.checks.append(warn("configuration", text, "mend that; run: mcp-bridge apply"))
        original = Original.read(server.spec, server.argv, self.manager)
        self.checks += self._unit(instance, original.facts)
        if server.spec.root is None:
            self.checks += needs.guarded("command", needs.of_command(server.spec, server.argv))
        else:
            text = f"apply has looked for it in {server.spec.root.path}"
            self.checks.append(ok("command", text))
        self.checks += needs.guarded("credential", needs.of_credentials(original))
        self.checks += needs.guarded("paths", needs.of_paths(original))
        self.checks += needs.guarded("state directory", needs.of_state(original))
        failures = (check for check in self.checks if check.level is Level.FAIL)
        return next(failures, original)

    def _only(self, check: Check) -> Check:
        self.checks.append(check)
        return check

    def held(self, instance: str) -> Check | None:
        """Why calls of a server that can start are refused."""
        state = self.row["state"] if self.row is not None else None
        if state not in _HELD:
            return None
        cause, text, command = _HELD[State(state)]
        return fail("proxy", text, cause.word, f"run: {command.format(instance)}")

    def _host(self) -> Iterator[Check]:
        yield ok("systemd", f"answers, asked by {self.manager.name}")
        for unit in (PROXY, *PORTS):
            facts = self.manager.facts(unit)
            if facts.active == "active":
                yield ok("proxy", f"{unit} is active")
            else:
                yield warn("proxy", f"{unit} is {facts.active}", f"systemctl start {unit}")
        for unit in WATCHES:
            # systemd tries one that had no inotify watch to have (`resources`) never again.
            if (facts := self.manager.facts(unit)).active == "active":
                yield ok("changes", f"{unit} is active")
            else:
                text = f"{unit} is {facts.active} ({facts.result}): nothing is applied by itself"
                yield warn("changes", text, f"systemctl restart {unit}")
        rule = Path("/") / FILES["polkit.rules"]
        if not rule.exists():
            yield warn("polkit", f"{rule} is not there: the proxy may start no unit")
        elif self.manager.facts("polkit.service").load != "loaded":
            yield warn("polkit", "polkit is not installed: the proxy may start no unit")
        else:
            yield ok("polkit", f"{rule} lets the proxy start units")

    def _unit(self, instance: str, facts: UnitFacts) -> Iterator[Check]:
        unit, socket = service_of(instance), self.manager.facts(socket_of(instance))
        for name, each in ((unit, facts), (socket_of(instance), socket)):
            if each.masked:
                mend = f"run: systemctl unmask {name}"
                yield fail("unit", f"is masked: {name}", Cause.MASKED.word, mend)
        if not facts.drop_ins:
            text = f"has no unit: {unit} has no drop-in of its own"
            yield fail("unit", text, Cause.NO_UNIT.word, "run: mcp-bridge apply")
        elif facts.active == "failed":
            yield warn("unit", f"{unit} has failed: {facts.result}")
        else:
            yield ok("unit", f"{unit} is {facts.active}")
        self.runs = facts.active in {"active", "activating"}
        if socket.active == "active":
            yield ok("socket", f"{socket_of(instance)} listens")
        elif not socket.masked:
            text = f"{socket_of(instance)} is {socket.active} ({socket.result})"
            yield warn("socket", text, f"systemctl start {socket_of(instance)}")

    def _not_in_force(self, instance: str) -> Check:
        told = [str(problem) for problem in refused.read(self.places.refused)]
        own = [line for line in told if instance in line] or told
        if own:
            text = f"is not in force, for apply refused the files: {own[0]}"
            return fail("configuration", text, Finding.NOT_IN_FORCE, "mend that")
        text = "is not in force: apply has not run since it was written"
        return fail("configuration", text, Finding.NOT_IN_FORCE, "run: mcp-bridge apply")


def _state(server: AcceptedServer) -> Check | None:
    """A server without a unit to start."""
    spec = server.spec
    if not spec.enabled:
        mend = f"run: mcp-bridge enable {spec.instance}"
        return fail("configuration", "is disabled", Cause.DISABLED.word, mend)
    if server.state is State.INSTALLING:
        return fail("package", f"is not installed yet: {server.why}", Cause.INSTALLING.word, "wait")
    if server.state is None:
        return None
    if server.state is State.REFUSED:
        mend = "mend that, then run: mcp-bridge apply"
        text = f"is not in force: {server.why}"
        return fail("configuration", text, Finding.NOT_IN_FORCE, mend)
    if server.state is State.CREDENTIAL_MISSING:
        return needs.missing_credential(server.why)
    if _is_plain(spec.command):
        return needs.unusable_program(spec, server.why)
    mend = "mend the command or the network, then run: mcp-bridge apply"
    return fail("package", f"is not installed: {server.why}", Cause.INSTALL_FAILED.word, mend)


def _is_plain(command: tuple[str, ...]) -> bool:
    """Whether the command is a program of the host, and no package."""
    try:
        return parse_command(command) is None
    except (ValueError, InstallError):
        return False
