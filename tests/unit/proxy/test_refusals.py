"""The one function that every refusal passes."""

import logging

from autobot_mcp_bridge.model.host import Audit
from autobot_mcp_bridge.policy.audit.trail import AuditTrail
from autobot_mcp_bridge.policy.principals import Key
from autobot_mcp_bridge.proxy.refusals import STRANGERS_BURST, Reason, Refusals, Refused

KEY = Key("a" * 64, "00000001", 1.0, "acme", None, frozenset(), "a1", "coder")


def test_strangers_are_counted_whole_and_logged_within_a_budget(caplog):
    caplog.set_level(logging.INFO)
    refusals = Refusals(AuditTrail(Audit()))
    for _ in range(100):
        refusals.refused(Refused(Reason.NOT_VALID, "POST", "/t/x"))

    assert refusals.counts[Reason.NOT_VALID] == 100
    assert STRANGERS_BURST <= len(caplog.records) < 100


def test_a_known_callers_refusals_are_all_logged_and_say_whose(caplog):
    caplog.set_level(logging.INFO)
    refusals = Refusals(AuditTrail(Audit()))
    for _ in range(100):
        refusals.refused(
            Refused(Reason.PROJECT, "POST", "/t/x", KEY, "web", "acme.files", "because")
        )

    told = [record for record in caplog.records if record.name.endswith("refusals")]
    assert len(told) == 100
    assert told[0].getMessage() == (
        "refused: mcp_server_project_mismatch: POST /t/x by a1 (coder), "
        "key 00000001 of acme, project web: because"
    )
    assert told[0].MCP_INSTANCE == "acme.files"


def test_a_long_path_is_cut(caplog):
    caplog.set_level(logging.INFO)
    Refusals(AuditTrail(Audit())).refused(Refused(Reason.NOT_VALID, "GET", "/t/" + "x" * 5000))

    assert len(caplog.messages[0]) < 300
