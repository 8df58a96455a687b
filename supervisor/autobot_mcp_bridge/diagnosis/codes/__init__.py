"""Every stable word, explained: of calls, of deaths, of doctor's findings."""

from autobot_mcp_bridge.diagnosis.codes.calls import CALLS
from autobot_mcp_bridge.diagnosis.codes.code import Code
from autobot_mcp_bridge.diagnosis.codes.deaths import DEATHS
from autobot_mcp_bridge.diagnosis.codes.findings import FINDINGS

__all__ = ["ALL", "BY_WORD", "CALLS", "DEATHS", "FINDINGS", "Code"]

ALL: tuple[Code, ...] = (*CALLS, *DEATHS, *FINDINGS)
BY_WORD = {code.word: code for code in ALL}
