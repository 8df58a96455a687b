"""Directives are read as systemd reads them."""

from autobot_mcp_bridge.diagnosis.unit_text import as_instance, entries, plain, values
from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units import render

TEMPLATE = "[Service]\nNoExecPaths=/ /tmp\n# NoExecPaths=/away\nMemoryMax=1G\n"
OWN = '[Service]\nNoExecPaths="/var/lib/a b" \\\n "/srv/100%%"\n'


def test_a_list_is_collected_over_all_texts_as_it_is_written():
    found = entries((TEMPLATE, OWN), "NoExecPaths")

    assert found == ["/", "/tmp", '"/var/lib/a b"', '"/srv/100%%"']
    assert [*map(plain, found)] == ["/", "/tmp", "/var/lib/a b", "/srv/100%"]


def test_an_empty_value_clears_those_before():
    assert values((TEMPLATE, "[Service]\nMemoryMax=\n"), "MemoryMax") == []
    assert values((TEMPLATE, "MemoryMax=\nMemoryMax=2G\n"), "MemoryMax") == ["2G"]


def test_an_optional_entry_stands_for_its_path():
    assert plain('"-/opt/x"') == "/opt/x"


def test_specifiers_of_the_instance_are_filled_in_and_no_others():
    unit = "autobot-mcp-bridge@acme.files.service"
    text = as_instance("BindPaths=/srv/%i %n %%i %t/%N", unit, "acme.files")

    assert text == f"BindPaths=/srv/acme.files {unit} %%i %t/autobot-mcp-bridge@acme.files"


def test_the_end_of_an_instance_with_a_root_is_recorded_as_its_own():
    keys = {"name": "files", "command": ["/usr/bin/true"], "root": {"directory": "/srv/root"}}
    spec = ServerSpec.model_validate(keys)
    drop_in = render.drop_in(spec, Command(spec.command))

    text = as_instance(drop_in, "autobot-mcp-bridge@files.service", "files")

    (last,) = values([text], "ExecStopPost")
    assert last.endswith("/usr/lib/mcp-bridge/ended.py %i")
