"""How much memory a server uses, seen from outside: best effort, where there is no cgroup."""

from collections.abc import Collection

from autobot_mcp_bridge.runtimes.subprocess import proc

_MIB = 1 << 20


def excess(processes: Collection[proc.Seen], limit: int) -> str | None:
    """Tell in words by how much the limit in bytes is exceeded; None: it is not.

    Resident sizes count shared pages once in every process, so their sum is only the reason to
    look closely: a server that forks workers must not die for pages that they share.
    """
    if sum(seen.resident for seen in processes) <= limit:
        return None
    used = 0
    for seen in processes:
        own = proc.own_memory(seen.pid)
        used += seen.resident if own is None else own
    if used <= limit:
        return None
    count = len(processes)
    return (
        f"{used / _MIB:.0f} MiB in {count} process{'es' if count > 1 else ''}, "
        f"limits.memory is {limit / _MIB:.0f} MiB"
    )
