"""The smaller doctor: without systemd, with real processes."""

import json
from pathlib import Path

import pytest

from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.diagnosis.plain import examine_plain
from autobot_mcp_bridge.model.names import parse_instance

PYTHON = "/usr/bin/python3"  # that every uid can execute
BROKEN = str(Path(__file__).parents[2] / "servers" / "broken.py")


@pytest.fixture
def examined(reachable):
    """Examine a server whose definition is given."""
    places = Places(reachable / "config", reachable / "state", reachable / "run")
    places.config_dir.mkdir()

    async def examine(*command, **keys):
        server = {"name": "one", "command": [*command], "timeouts": {"start": "2s"}, **keys}
        document = json.dumps({"version": 1, "servers": [server]})
        places.servers_json.write_text(document, encoding="utf-8")
        name = parse_instance("one")
        return await examine_plain(name, places, deadline=30.0, tell=lambda _line: None)

    return examine


async def test_a_healthy_server_gets_a_clean_bill(examined):
    report = await examined(PYTHON, BROKEN, "healthy")

    assert report.healthy, report.text()
    assert report.text()[0].startswith("one starts: ")


@pytest.mark.parametrize(
    ("way", "code", "word"),
    [
        ("bug", "server_fault", "EXAMPLE_URL"),
        ("noise", "stdout_noise", "[info] server/discover ..."),
        ("buffered", "stdout_buffered", "flush"),
    ],
)
async def test_how_a_server_fails_is_told(examined, way, code, word):
    # The proxy has a python server flush; a definition may undo that.
    env = {"PYTHONUNBUFFERED": ""} if way == "buffered" else {}
    report = await examined(PYTHON, BROKEN, way, env=env)

    assert report.verdict.code == code, report.text()
    assert word in report.text()[0]


async def test_a_program_that_is_not_there_is_named(examined):
    report = await examined("/usr/local/bin/sh", "-c", "true")

    assert report.verdict.code == "program_missing"
    assert json.loads(f"{{{report.text()[0].partition('; set ')[2]}}}")["command"][0].endswith(
        "/sh"
    )


async def test_a_program_that_cannot_be_executed_is_told_apart(examined, reachable):
    program = reachable / "program"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o644)
    report = await examined(str(program))
    assert report.verdict.code == "program_unusable"
    assert f"chmod a+rx {program}" in report.text()[0]

    program.write_text("#!/no/interpreter\n", encoding="utf-8")
    program.chmod(0o755)
    report = await examined(str(program))
    assert report.verdict.code == "program_missing"
    assert "/no/interpreter" in report.text()[0]


async def test_a_definition_with_a_mistake_is_told(examined):
    report = await examined("/bin/true", profile="no such")

    assert report.verdict.code == "not_in_force"
    assert "profile" in report.text()[0]
