"""No secret comes into the log, whoever logs it, and nothing of it goes to stdout (SM-80, SM-83)."""

import logging
import subprocess
import sys

import pytest

from autobot_mcp_bridge.cli.journal import Redacting
from autobot_mcp_bridge.model.known_values import KnownValues

SECRETS = {
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "bearer": "Bearer opensesame-1",
    "github": "ghp_0123456789abcdefABCDEF",
    "vault": "hvs.CAESIJ0123456789",
    "hex": "deadbeef" * 4,
    "known": "the-value-of-a-variable",
}
pytestmark = pytest.mark.requirement("SM-83")


@pytest.fixture
def said():
    """What a logger of any library has said."""
    lines = []

    class Keep(logging.Handler):
        def emit(self, record):
            lines.append(self.format(record))

    handler = Keep()
    known = KnownValues()
    known.learn([("API_KEY", SECRETS["known"])])
    handler.setFormatter(Redacting("%(levelname)s %(message)s", known))
    logger = logging.getLogger("some.library")
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)


log = logging.getLogger("some.library")


@pytest.mark.parametrize("kind", SECRETS)
def test_a_message_its_arguments_and_a_traceback_are_redacted(said, kind):
    secret = SECRETS[kind]
    message = f"before {secret} after"
    log.error(message)
    log.error("before %s %r after", secret, {"q": [secret]})
    try:
        raise ValueError(f"it was {secret}")
    except ValueError:
        log.exception("a fault")

    assert len(said) == 3
    assert secret.removeprefix("Bearer ") not in "\n".join(said)
    assert all("after" in text for text in said[:2])
    assert said[2].startswith("ERROR a fault\nTraceback (most recent call last):\n")


def test_a_private_key_over_several_lines_is_redacted(said):
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ\n-----END PRIVATE KEY-----"
    log.error("key:\n%s\nafter", key)

    assert "MIIE" not in said[0] and "kqhk" not in said[0]
    assert said[0].endswith("\nafter")


def test_the_value_of_a_servers_variable_is_named(said):
    log.warning("it said %s", SECRETS["known"])

    assert said == ["WARNING it said <redacted-value:API_KEY>"]


def test_what_is_no_secret_stays_as_it_is(said):
    for text in (
        "127.0.0.1 POST /t/acme/p/web/s/files-2026-of-the-very-long-name/mcp 200 1.2 ms",
        "files: it was killed by SIGKILL",
        "listening on http://127.0.0.1:8765",
        "7d0c5a62-9b0e-4f6d-8a10-5c1b9f0e2f6d",
    ):
        log.warning("%s", text)
        assert said[-1] == f"WARNING {text}"


def test_a_line_cannot_be_made_to_look_like_two_of_a_terminal(said):
    log.warning("%s", "one\x1b[2Jtwo\rthree")

    assert said == ["WARNING one\N{REPLACEMENT CHARACTER}[2Jtwo\N{REPLACEMENT CHARACTER}three"]


class Broken:
    def __str__(self):
        raise RuntimeError(SECRETS["github"])


@pytest.mark.parametrize("args", [("%s", Broken()), ("%d", SECRETS["github"]), ("%s %s", "one")])
def test_a_record_that_cannot_be_formatted_is_dropped_and_not_shown_raw(args):
    record = logging.makeLogRecord(
        {"name": "some.library", "levelname": "ERROR", "msg": args[0], "args": args[1:]}
    )
    shown = Redacting("%(message)s", KnownValues()).format(record)

    assert shown == "ERROR some.library: a record that cannot be formatted"


PROGRAM = """
import logging
from autobot_mcp_bridge.cli import journal
from autobot_mcp_bridge.policy.audit.say import say
journal.set_up("mcp-bridge-proxy").learn([("API_KEY", "the-value-of-a-variable")])
logging.getLogger("aiohttp.server").error("with the-value-of-a-variable")
logging.getLogger("autobot_mcp_bridge").warning("%d", "ghp_0123456789abcdef")
say({"level": "info", "event": "tool_call", "tool": "echo"}, None)
"""


@pytest.mark.requirement("SM-80")
def test_log_and_records_go_to_stderr_and_never_to_stdout():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "ERROR with <redacted-value:API_KEY>",
        "WARNING autobot_mcp_bridge: a record that cannot be formatted",
        '{"level":"info","event":"tool_call","tool":"echo"}',
    ]
