"""The small server of our own, spoken to as a client does: a real process, lines on its pipes."""

import json
import subprocess
import sys

import pytest

WORDS = [sys.executable, "-m", "autobot_mcp_bridge.cli.main", "demo"]


class Demo:
    def __init__(self):
        self.process = subprocess.Popen(
            WORDS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def send(self, method, ident=None, **params):
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if ident is not None:
            message["id"] = ident
        self.process.stdin.write(json.dumps(message) + "\n")

    def read(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, method, **params):
        self.send(method, "one", **params)
        return self.read()

    def call(self, tool, **arguments):
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]


@pytest.fixture
def demo():
    found = Demo()
    yield found
    found.process.stdin.close()
    found.process.stdout.close()
    found.process.wait(30)


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
def test_it_speaks_every_version_of_the_handshake_era(demo, version):
    answer = demo.ask("initialize", protocolVersion=version, capabilities={})

    assert answer["result"]["protocolVersion"] == version


def test_an_unknown_version_is_answered_with_the_newest(demo):
    answer = demo.ask("initialize", protocolVersion="1999-01-01")

    assert answer["result"]["protocolVersion"] == "2025-11-25"


def test_every_listed_tool_has_a_schema_and_can_be_called(demo):
    tools = demo.ask("tools/list")["result"]["tools"]
    arguments = {"hello": {"name": "x"}, "add": {"a": 1, "b": 2}, "sleep": {"seconds": 0}}

    assert {tool["name"] for tool in tools} == {"hello", "add", "sleep", "clock"}
    for tool in tools:
        assert tool["inputSchema"]["type"] == "object"
        assert demo.call(tool["name"], **arguments.get(tool["name"], {}))["isError"] is False


def test_the_tools_answer_what_they_say(demo):
    assert demo.call("hello", name="world")["content"][0]["text"] == "Hello, world!"
    assert demo.call("add", a=2, b=40)["content"][0]["text"] == "42"
    assert demo.call("add", a=0.5, b=1)["content"][0]["text"] == "1.5"


@pytest.mark.parametrize("arguments", [{}, {"a": "1", "b": 2}, {"a": True, "b": 2}])
def test_wrong_arguments_are_an_error_of_the_tool(demo, arguments):
    assert demo.call("add", **arguments)["isError"] is True


def test_an_unknown_tool_and_an_unknown_method_have_their_codes(demo):
    assert demo.ask("tools/call", name="nothing")["error"]["code"] == -32602
    assert demo.ask("no/such")["error"]["code"] == -32601


def test_a_sleeping_call_does_not_hold_the_others_and_tells_its_progress(demo):
    meta = {"progressToken": "p"}
    demo.send("tools/call", 1, name="sleep", arguments={"seconds": 0.2}, _meta=meta)
    demo.send("ping", 2)
    answers = [demo.read(), demo.read(), demo.read()]
    while "id" not in answers[-1] or answers[-1]["id"] != 1:
        answers.append(demo.read())

    ids = [answer["id"] for answer in answers if "id" in answer]
    assert ids == [2, 1]
    told = [a["params"] for a in answers if a.get("method") == "notifications/progress"]
    assert told != []
    assert {params["progressToken"] for params in told} == {"p"}


def test_a_cancelled_call_gets_no_answer(demo):
    demo.send("tools/call", 1, name="sleep", arguments={"seconds": 600})
    demo.send("notifications/cancelled", requestId=1)
    demo.send("ping", 2)

    assert demo.read()["id"] == 2
    demo.process.stdin.close()
    assert demo.process.stdout.read() == ""


def test_junk_is_answered_and_survived(demo):
    demo.process.stdin.write("junk\n[]\n\n")

    assert demo.read()["error"]["code"] == -32700
    assert demo.ask("ping")["result"] == {}


def test_it_does_not_import_what_is_slow():
    code = (
        "import sys; from autobot_mcp_bridge.cli.main import main; main(['demo']);"
        "print(sorted({'aiohttp', 'pydantic', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input="",
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )

    assert done.stdout.strip() == "[]"
