"""Entries of the journal's native protocol, as journald reads them."""

import logging
import socket
import struct

import pytest

from autobot_mcp_bridge.cli.journal import LONGEST, JournalHandler
from autobot_mcp_bridge.policy.audit import say


@pytest.fixture
def journald(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(tmp_path / "journal"))
        made.settimeout(5)
        yield made


@pytest.fixture
def log(journald):
    logger = logging.Logger("autobot_mcp_bridge.test")  # noqa: LOG001 - of this test alone
    handler = JournalHandler("mcp-bridge-proxy", journald.getsockname())
    logger.addHandler(handler)
    yield logger
    handler.close()


def read(journald):
    data, fields = journald.recv(1 << 20), {}
    while data:
        name, _, data = data.partition(b"\n")
        (size,) = struct.unpack("<Q", data[:8])
        fields[name.decode()] = data[8 : 8 + size].decode()
        assert data[8 + size : 9 + size] == b"\n"
        data = data[9 + size :]
    return fields


def test_an_entry_has_its_level_and_the_server_that_it_concerns(journald, log):
    log.warning(
        "%s: %s", "files", "it exited", extra={"MCP_INSTANCE": "files", "MCP_CAUSE": "exit"}
    )

    assert read(journald) == {
        "MESSAGE": "files: it exited",
        "PRIORITY": "4",
        "SYSLOG_IDENTIFIER": "mcp-bridge-proxy",
        "LOGGER": "autobot_mcp_bridge.test",
        "MCP_INSTANCE": "files",
        "MCP_CAUSE": "exit",
    }


@pytest.mark.requirement("AB-45")
def test_an_end_by_which_the_sandbox_has_kept_a_promise_says_which(journald, log):
    for cause, promise in (("memory", "memory"), ("seccomp", "syscalls"), ("exit", None)):
        log.warning("it ended", extra={"MCP_INSTANCE": "files", "MCP_CAUSE": cause})
        assert read(journald).get("MCP_ISOLATION") == promise


def test_no_text_can_become_a_field_of_its_own(journald, log):
    log.error("a\nMCP_INSTANCE=forged\nb", extra={"MCP_INSTANCE": "x\nPRIORITY=0"})

    fields = read(journald)
    assert fields["MESSAGE"] == "a\nMCP_INSTANCE=forged\nb"
    assert fields["MCP_INSTANCE"] == "x\nPRIORITY=0"
    assert fields["PRIORITY"] == "3"


def test_an_entry_without_end_is_cut_and_arrives(journald, log):
    log.error("x" * (LONGEST + 1))

    assert len(read(journald)["MESSAGE"]) == LONGEST


def test_what_journald_does_not_take_goes_to_stderr(journald, log, capsys):
    journald.close()

    log.error("still said")

    assert capsys.readouterr().err == "still said\n"


@pytest.mark.requirement("SM-80")
def test_a_calls_record_has_its_words_as_fields(journald, log):
    line = {
        "level": "warning",
        "event": "scope_violation",
        "instance": "acme.files",
        "tenant": "acme",
        "tool": "echo",
        "status": "blocked",
        "session_id": "s",
        "seq": 7,
    }
    heard = logging.getLogger(say.NAME)
    heard.addHandler(log.handlers[0])
    try:
        say.say(line, b'{"seq":7}\n')
    finally:
        heard.removeHandler(log.handlers[0])

    assert read(journald) == {
        "MESSAGE": '{"seq":7}',
        "PRIORITY": "4",
        "SYSLOG_IDENTIFIER": "mcp-bridge-proxy",
        "LOGGER": "autobot_mcp_bridge.audit",
        "MCP_INSTANCE": "acme.files",
        "MCP_TENANT": "acme",
        "MCP_EVENT": "scope_violation",
        "MCP_STATUS": "blocked",
        "MCP_TOOL": "echo",
        "MCP_SESSION": "s",
        "MCP_AUDIT_SEQ": "7",
    }
