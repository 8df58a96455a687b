"""The record of all calls of one proxy: makes them, closes what is left, and knows the chain."""

import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.host import Audit
from autobot_mcp_bridge.model.known_values import KnownValues, secret_variables
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.policy.audit.asked import Asked, Kind, Recorded
from autobot_mcp_bridge.policy.audit.bursts import QUIET, WINDOW, Bursts
from autobot_mcp_bridge.policy.audit.clock import Clock
from autobot_mcp_bridge.policy.audit.files import AuditFile
from autobot_mcp_bridge.policy.audit.open_calls import OpenCalls
from autobot_mcp_bridge.policy.audit.outcome import TOLD, Event, Status
from autobot_mcp_bridge.policy.audit.record import LOGGER, CallRecord
from autobot_mcp_bridge.policy.audit.redaction import ArgumentRedactor
from autobot_mcp_bridge.policy.audit.say import say
from autobot_mcp_bridge.policy.audit.who import Identity
from autobot_mcp_bridge.policy.audit.writer import Writer

log = logging.getLogger(__name__)


class AuditTrail:
    """`async with AuditTrail(…)`: records are taken until the block ends.

    What is closed before or after it, or without a file, is counted and told, and not written.

    Attributes:
        lines: how many there were, by status.
        keeps_args: whether anybody reads the arguments.
        bursts: of requests that were not let in.
    """

    def __init__(
        self, settings: Audit, places: Places | None = None, logs: KnownValues | None = None
    ) -> None:
        """`logs` are the values that the log leaves out."""
        self._logs = logs or KnownValues()
        self.settings = settings
        self.lines: Counter[str] = Counter()
        self.bursts = Bursts()
        self._places = places
        self._writer: Writer | None = None
        self._page: OpenCalls | None = None
        self._open: set[CallRecord] = set()
        self._more: dict[str, str] = {}
        # By the identity of the definition, which is another object once it has changed.
        self._servers: dict[int, tuple[ServerSpec, Recorded]] = {}
        self.keeps_args = settings.args and (settings.file or settings.stderr != "off")
        self._clock = Clock()

    async def __aenter__(self) -> Self:
        """Raises UnavailableError if nothing can be written and audit.required is true."""
        if self.settings.file and self._places is not None:
            settings = self.settings
            file = AuditFile(self._places.audit_d, settings.max_bytes, settings.backups)
            self._writer = await Writer(file, self).start(required=settings.required)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        for record in list(self._open):
            record.failed(CallError(Cause.SHUTTING_DOWN, "the proxy has ended"))
        if self._writer is not None:
            await self._writer.close()
            self._writer = None
        if self._page is not None:
            self._page.close()
            self._page = None

    # ---- a request ----

    def begin(self, server: Recorded, asked: Asked, counts: Counter[str]) -> CallRecord:
        """A record for one request; to be closed by whoever gets it."""
        record = CallRecord(self, server, asked, counts)
        if asked.kind is Kind.CALL:
            self._open.add(record)
            if self._page is not None:
                self._page.begin()
        return record

    def of(self, spec: ServerSpec) -> Recorded:
        """What its records say of a server."""
        known = self._servers.get(id(spec))
        if known is not None and known[0] is spec:
            return known[1]
        redact = ArgumentRedactor(KnownValues({**secret_variables(spec.env), **self._more}))
        server = Recorded(spec.tenant, spec.project, spec.name, spec.instance, redact)
        self._servers[id(spec)] = spec, server
        return server

    def learn(self, specs: Iterable[ServerSpec], manifests: Mapping[str, str]) -> None:
        """These are the servers now: no secret variable of theirs comes into records and log.

        Nor does one of the proxy's own that manifests name.
        """
        self._servers.clear()
        self._more = secret_variables(manifests)
        all_of_them = [*(secret_variables(spec.env) for spec in specs), self._more]
        self._logs.learn(pair for each in all_of_them for pair in each.items())

    # ---- `Keeper` of the records ----

    @property
    def refusal(self) -> CallError | None:
        if not self.settings.required or (self._writer is not None and self._writer.can_write):
            return None
        text = "calls cannot be recorded now, and have to be"
        return CallError(Cause.AUDIT_UNAVAILABLE, text, retry_after=1)

    def over(self, record: CallRecord, line: dict[str, Any] | None) -> None:
        is_call = record.asked.kind is Kind.CALL
        if is_call:
            self._open.discard(record)
        if line is None:
            return
        if not is_call and self._page is not None:
            self._page.begin()
        self.lines[line["status"]] += 1
        line["timestamp"] = self._clock.stamp()
        self._keep(line)

    def _keep(self, line: dict[str, Any]) -> None:
        written = None
        if self._writer is not None:
            try:
                written = self._writer.append(line)
            except TypeError:  # what a client sent can be read and not be written
                written = self._writer.append({**line, "args": "[cannot be written]"})
        told = self.settings.stderr
        if told == "all" or (told == "blocked" and line.get("status") == Status.BLOCKED):
            say(line, written)

    # ---- what is of no call ----

    def refused(self, word: str, who: Identity, asked: dict[str, str | None]) -> None:
        """A known caller was let in nowhere: a line like that of a call that is blocked (NV-27)."""
        event, level = TOLD[Status.BLOCKED]
        if self._page is not None:
            self._page.begin()
        self.lines[Status.BLOCKED] += 1
        named = {
            "agent_id": who.agent_id,
            "agent_type": who.agent_type,
            "status": Status.BLOCKED,
            "error": word,
            "principal": who.principal,
        }
        self._keep({**self._event(event, level), **named, **asked})

    def unauthorized(self, client: str) -> None:
        """A request was not let in; many at once are told once (SM-09)."""
        if not self.bursts.refused(time.monotonic()):
            return
        recent = self.bursts.recent
        log.warning(
            "%d requests without a valid token within %g s, the last from %s; "
            "no more is said of them for %g s",
            *(recent, WINDOW, client, QUIET),
        )
        if self._page is not None:
            self._page.begin()
        self._keep(
            {**self._event(Event.UNAUTHORIZED, "warning"), "count": recent, "client": client}
        )

    def _event(self, event: Event, level: str = "info") -> dict[str, Any]:
        return {"timestamp": self._clock.stamp(), "level": level, "logger": LOGGER, "event": event}

    # ---- `Tells` of the writer ----

    def greeting(self, file: AuditFile) -> dict[str, Any]:
        """Only now the file is ours, and with it the page of whoever had it before."""
        record = self._event(Event.STARTED)
        if self._places is not None and self._page is None:
            with suppress(OSError):  # then nobody will know how many calls a SIGKILL has cost
                self._page = OpenCalls(self._places.open_calls)
        if self._page is not None:
            record["unrecorded"] = missing = self._page.unrecorded(file.chain.seq)
            if missing:
                log.warning("%d calls have no record: the proxy before was killed", missing)
            self._page.record(0, file.chain.seq)
            self._page.begin()
        if file.torn is not None:
            log.warning(
                "the last line of audit.jsonl was cut off; its %d bytes are in %s now",
                *(file.torn.size, file.torn.kept),
            )
            record |= {"level": "warning", "torn": file.torn.kept, "torn_bytes": file.torn.size}
        return record

    def gap(self, missing: int) -> dict[str, Any]:
        if self._page is not None:
            self._page.begin()
            self._page.record(missing, self._page.seq)
        return {**self._event(Event.GAP, "error"), "missing": missing}

    def written(self, lines: int, seq: int) -> None:
        if self._page is not None:
            self._page.record(lines, seq)

    # ---- for people ----

    @property
    def lost(self) -> int:
        """Records for which there was no room."""
        return self._writer.lost if self._writer is not None else 0

    @property
    def healthy(self) -> bool:
        """Whether what is to be written can be."""
        return self._writer is None or self._writer.can_write
