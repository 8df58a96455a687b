"""What doctor says of a server by url whose remote end is the fault."""

import pytest

from autobot_mcp_bridge.diagnosis.outcome import Outcome, Stage
from autobot_mcp_bridge.diagnosis.remote_end import of_remote
from autobot_mcp_bridge.diagnosis.verdict import Verdict
from autobot_mcp_bridge.model.death import Death, DeathCause
from autobot_mcp_bridge.model.finding import Finding
from autobot_mcp_bridge.model.server import ServerSpec

FAR = ServerSpec(name="far", url="https://a.example/mcp")
LOCAL = ServerSpec(name="local", command=("a",))
LAST = "mcp-bridge: https://a.example: cannot be connected to: connection refused"


def verdict(status, words=("first", LAST)):
    death = Death(DeathCause.EXIT, status)
    outcome = Outcome(Stage.INITIALIZE, "it exited", death, words=words)
    return Verdict(Finding.SERVER_FAULT, "fails by its own fault", outcome=outcome)


@pytest.mark.parametrize(
    ("status", "word"),
    [(68, "resolvers"), (69, "runs"), (76, "authority"), (77, "key"), (78, "url")],
)
def test_its_status_says_what_to_do_and_its_last_line_why(status, word):
    told = of_remote(FAR, verdict(status))

    assert told.code == Finding.REMOTE_END
    assert told.why.endswith("https://a.example: cannot be connected to: connection refused")
    assert word in told.advice


@pytest.mark.parametrize(
    ("spec", "given"),
    [(LOCAL, verdict(69)), (FAR, verdict(1)), (FAR, verdict(69, ())), (FAR, Verdict("", "starts"))],
)
def test_everything_else_stays_as_it_is(spec, given):
    assert of_remote(spec, given) is given
