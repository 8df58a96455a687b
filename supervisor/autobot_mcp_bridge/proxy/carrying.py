"""From a call into its stream, whether or not a client reads it (C10)."""

import asyncio
import logging

from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.policy.audit.record import CallRecord
from autobot_mcp_bridge.proxy.replies import call_error_body
from autobot_mcp_bridge.sessions.exchange import Exchange
from autobot_mcp_bridge.sessions.session import Session, SessionTable

log = logging.getLogger(__name__)


class Carrier:
    """Puts what comes for a call into its stream; the call is its session's until the answer."""

    def __init__(
        self, exchange: Exchange, session: Session, sessions: SessionTable, record: CallRecord
    ) -> None:
        self.stream = session.streams.begin()
        self.stream.fetch = self._fetch
        self._exchange = exchange
        self._session = session
        self._sessions = sessions
        self._record = record
        record.hand_over()
        self._loop = asyncio.get_running_loop()
        self._carry()

    def _carry(self, _wake: asyncio.Future[None] | None = None) -> None:
        self._fetch()
        if self.stream.fetch is not None:
            self._wait()

    def _wait(self) -> None:
        call = self._exchange.call
        if call.wake.done():
            call.wake = self._loop.create_future()
        call.wake.add_done_callback(self._carry)

    def _fetch(self) -> None:
        call = self._exchange.call
        if self.stream.ended:  # with its session, and nobody reads it
            self._record.gone()
            self._end()
            return
        while call.events:
            self.stream.push(call.events.pop())
        if call.done:
            self.stream.end(self._answer(), self._too_large)
            self._sessions.answered(self._session, self.stream)
            self._end()

    def _end(self) -> None:
        self.stream.fetch = None
        self._exchange.close()

    def _answer(self) -> bytes:
        call = self._exchange.call
        try:
            if call.answer is not None:
                _, body = self._exchange.encode(call.answer)
                self._record.answered(call.answer)
                return body
            error = call.error or CallError(Cause.INTERNAL, "internal error")
        except CallError as fault:
            error = fault
        except Exception:
            # The top of what an answer reaches: its client would wait for ever.
            log.exception("fault while encoding an answer")
            error = CallError(Cause.INTERNAL, "internal error")
        self._record.failed(error)
        return call_error_body(error, self._exchange.client_id)

    def _too_large(self) -> bytes:
        text = "the connection broke, and the answer is larger than what is kept"
        error = CallError(Cause.ANSWER_TOO_LARGE, text)
        return call_error_body(error, self._exchange.client_id)
