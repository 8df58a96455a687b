"""What a call's record asks of a trace of it; who makes traces is imported only where they are wanted."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

from autobot_mcp_bridge.policy.audit.asked import Asked, Recorded

# Why a span did not reach its collector: there were too many, the collector did not take it within
# its time, it refused it, or the proxy has ended first.
DROPS = ("queue_full", "undelivered", "rejected", "stopped")


class CallSpan(Protocol):
    """The trace of one call, from its request to its end."""

    @property
    def trace_id(self) -> str:
        """32 hexadecimal digits (W3C Trace Context)."""
        ...

    def passes(self, message: dict[str, Any]) -> None:
        """The message goes on to its server, which is told of the trace in its `_meta`."""
        ...

    def here(self) -> None:
        """It did not, after all: the proxy has answered by itself."""
        ...

    def end(self, error: str | None, code: int | None) -> None:
        """The call has ended; with the word of its error and the code of JSON-RPC."""
        ...


class Tracer(Protocol):
    """Makes traces."""

    @property
    def exported(self) -> int:
        """Spans that the collector has taken."""
        ...

    @property
    def dropped(self) -> Counter[str]:
        """Spans that it will not have, by one of DROPS."""
        ...

    def begin(
        self,
        asked: Asked,
        server: Recorded,
        message: Mapping[str, Any],
        headers: Mapping[str, str],
    ) -> CallSpan | None:
        """The trace of a message that has just come; None: it is not to be traced."""
        ...
