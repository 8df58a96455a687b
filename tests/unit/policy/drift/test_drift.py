"""What one server's drift tells of, and what it refuses."""

import logging

import pytest

from autobot_mcp_bridge.model.errors import CallError, Cause, UsageError
from autobot_mcp_bridge.policy.drift import drift as module
from autobot_mcp_bridge.policy.drift.baseline import seal
from autobot_mcp_bridge.policy.drift.descriptor import tools_of
from autobot_mcp_bridge.policy.drift.drift import Drift


def tools(*names, text="reads"):
    return tuple(tools_of({"tools": [{"name": name, "description": text} for name in names]}))


@pytest.fixture
def drift():
    made = Drift("files")
    made.mode = "hold"
    made.package = "server@1.0.0"
    made.see(tools("read", "write"), first=True, whole=True)
    return made


def changed(drift, *names, text="sends"):
    kept = tools(*({"read", "write"} - {*names}))
    drift.see((*kept, *tools(*names, text=text)), first=True, whole=True)


def test_a_list_that_says_nothing_new_is_no_change_and_no_line(drift, caplog):
    before = drift.changes
    with caplog.at_level(logging.INFO):
        for _ in range(5):
            drift.see(tools("read", "write"), first=True, whole=True)

    assert drift.changes == before
    assert caplog.records == []


def test_the_first_list_and_each_difference_are_one_line_with_the_server_s_name(drift, caplog):
    with caplog.at_level(logging.INFO):
        changed(drift, "read")
        changed(drift, "read")

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("files: tools: read: not as accepted, held back; ")
    assert vars(record)["MCP_INSTANCE"] == "files"


def test_a_line_names_a_few_tools_and_counts_the_others(drift, caplog):
    with caplog.at_level(logging.WARNING):
        changed(drift, *(f"t{number}" for number in range(9)))

    assert "t0, t1, t2, t3, t4 and 4 more: not as accepted" in caplog.text


def test_a_name_cannot_forge_a_line_of_the_log(drift, caplog):
    with caplog.at_level(logging.WARNING):
        changed(drift, "evil\nfiles: all is well", "mcpb_abcdefghijklmnop")

    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    assert "abcdefghijklmnop" not in record.getMessage()


def test_a_server_that_lists_other_tools_each_time_does_not_fill_the_log(drift, caplog):
    with caplog.at_level(logging.INFO):
        for number in range(200):
            changed(drift, "read", text=f"sends {number}")

    assert 0 < len(caplog.records) <= module.MOST_LINES + 1


def test_an_error_says_which_tool_why_and_what_lets_it_through(drift):
    changed(drift, "read", "two words")

    error = drift.held("two words")
    assert error.cause is Cause.TOOL_HELD
    assert error.data == {"tool": "two words", "drift": "new"}
    assert "`mcp-bridge tools accept files 'two words'`" in str(error)
    assert drift.held("read").data["drift"] == "changed"


def test_what_differed_in_a_package_before_is_no_reason_to_refuse_the_next(drift):
    changed(drift, "read")
    with pytest.raises(CallError):
        drift.refuse_known("read")
    drift.refuse_known("write")

    drift.package = "server@1.0.1"

    drift.refuse_known("read")


def test_tools_are_chosen_by_name_or_all_and_only_as_they_were_looked_at(drift):
    changed(drift, "read", "send")
    seen = seal(drift.baseline)

    assert list(drift.choose((), seen)) == ["read", "send"]
    assert list(drift.choose(("send",), None)) == ["send"]
    with pytest.raises(UsageError, match="the tool write is accepted already"):
        drift.choose(("send", "write"), None)
    with pytest.raises(UsageError, match="the tool nope is not listed"):
        drift.choose(("nope",), None)
    changed(drift, "read", "send", text="sends more")
    with pytest.raises(UsageError, match="other tools differ"):
        drift.choose((), seen)


def test_each_tool_is_shown_with_the_version_it_was_accepted_for(drift):
    drift.package = "server@1.0.1"
    changed(drift, "read")

    shown = drift.shown()
    read, write = shown["tools"]
    assert (shown["drift"], shown["package"]) == ("hold", "server@1.0.1")
    assert (read["state"], write["state"]) == ("changed", "accepted")
    assert read["accepted"]["package"] == write["accepted"]["package"] == "server@1.0.0"
    assert read["differing"]["package"] == "server@1.0.1"
    assert '"description":"sends"' in read["differing"]["descriptor"]
    assert '"description":"reads"' in read["accepted"]["descriptor"]
    assert "descriptor" not in write["accepted"]
    assert drift.counts() == {"accepted": 1, "new": 0, "changed": 1, "gone": 0}
