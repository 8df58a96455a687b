"""One server as operators see it: what `/status` and `mcp-bridge list|status|top` show."""

import time

from autobot_mcp_bridge.proxy.served import Served, state_of


def describe(served: Served) -> dict[str, object]:
    """Plain values; times are in seconds, None where there is nothing to tell."""
    instance, now = served.instance, time.monotonic()
    state, detail = state_of(served)
    process, breaker = instance.process, instance.breaker
    calls = served.counts.calls
    death = instance.last_death
    return {
        "instance": served.spec.instance,
        "path": served.spec.id.path,
        "state": state.value,
        "pid": process.pid if process is not None else None,
        "detail": detail,
        "tools": {"drift": served.drift.mode, **served.drift.counts()},
        "refused": served.refused.why if served.refused is not None else None,
        "uptime": _rounded(now - instance.began) if instance.channel is not None else None,
        "idle_in": _rounded(instance.idle_in(now)),
        "sessions": len(served.conversations.sessions),
        "processes": served.conversations.processes,
        "open_calls": served.conversations.open_calls,
        "calls": sum(calls.values()),
        "failed": sum(calls.values()) - calls["ok"],
        "starts": served.counts.starts,
        "crashes": breaker.total,
        "breaker": breaker.state.value,
        "retry_after": _rounded(breaker.retry_after(now)) or None,
        "last_death": death.as_data() if death is not None and not death.asked else None,
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(max(0.0, seconds), 1)
