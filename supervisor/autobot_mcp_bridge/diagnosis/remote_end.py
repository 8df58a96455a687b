"""A server by url that fails: what its program says of the remote end, and what to do about it."""

from dataclasses import replace

from autobot_mcp_bridge.diagnosis.verdict import Verdict
from autobot_mcp_bridge.model.finding import Finding
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.upstream import endings

_SAYS = "mcp-bridge: "  # before its last line (upstream/stdio.py)
_ADVICE = {
    endings.NO_HOST: "mend the name in url, or this host's resolvers",
    endings.UNAVAILABLE: "see whether the remote server runs, and whether this host reaches it",
    endings.TEMPORARY: "try again",
    endings.PROTOCOL: "its certificate has to be for the name in url, of an authority in this "
    "host's store (update-ca-certificates)",
    endings.NO_PERMISSION: "give it another key, with mcp-bridge secret rotate",
    endings.CONFIG: "mend url, or list the address in network.allow with network.mode list",
}


def of_remote(spec: ServerSpec, verdict: Verdict) -> Verdict:
    """The verdict in terms of the remote end, where that is the fault; else as it is."""
    outcome = verdict.outcome
    if spec.url is None or verdict.code != Finding.SERVER_FAULT or outcome is None:
        return verdict
    status = outcome.death.status if outcome.death is not None else None
    advice = _ADVICE.get(status) if status is not None else None
    if advice is None or not outcome.words:
        return verdict
    why = f"cannot use its remote server: {outcome.words[-1].removeprefix(_SAYS)}"
    return replace(verdict, code=Finding.REMOTE_END, why=why, advice=advice)
