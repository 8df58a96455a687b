"""What AutoBot's unit, limits and variables promise, under this product's own names."""

import json
import re

import pytest

from autobot_mcp_bridge.config.explain import leaf_keys
from autobot_mcp_bridge.config.relations import server_relations
from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.host import static
from autobot_mcp_bridge.units.instances import folder_of
from autobot_mcp_bridge.units.render import drop_in
from rules.tree import ROOT

UNIT = "autobot-mcp-bridge@.service"
PAGE = (ROOT / "docs" / "OPERATE.md").read_text(encoding="utf-8")
SECTION = PAGE.split("## Coming from AutoBot\n", 1)[1].split("\n## ", 1)[0]
# AB-40, as AutoBot's own template writes it; ours may be stricter, never without one.
HARDENING = {
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "ProtectKernelTunables": "yes",
    "ProtectKernelModules": "yes",
    "ProtectControlGroups": "yes",
    "RestrictNamespaces": "yes",
    "RestrictRealtime": "yes",
    "LockPersonality": "yes",
    "MemoryDenyWriteExecute": "yes",
    "SystemCallArchitectures": "native",
}
# AB-41.
RESOURCES = {"cpu": "50%", "memory": "512M", "tasks": 64, "open_files": 256}


def settings(text):
    """Every directive with its values, in their order."""
    found = {}
    for line in text.splitlines():
        if re.match(r"[A-Za-z]+=", line):
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def template():
    return settings((ROOT / "templates" / UNIT).read_text(encoding="utf-8"))


def rendered(**keys):
    spec = ServerSpec.model_validate({"name": "files", "command": ["/usr/bin/thing"], **keys})
    assert [*server_relations(spec)] == []
    return settings(drop_in(spec, Command(spec.command)))


@pytest.mark.requirement("AB-39")
def test_each_server_is_an_instance_of_one_template_unit():
    assert static.FILES[UNIT] == f"usr/lib/systemd/system/{UNIT}"
    assert folder_of(ROOT, "acme.files").name == "autobot-mcp-bridge@acme.files.service.d"


@pytest.mark.requirement("AB-40")
@pytest.mark.parametrize("name", HARDENING)
def test_the_template_is_hardened_as_autobot_s_is(name):
    assert template()[name][-1] == HARDENING[name]


@pytest.mark.requirement("AB-40")
def test_the_template_allows_the_system_calls_of_services_without_the_privileged_ones():
    assert template()["SystemCallFilter"][:2] == ["@system-service", "~@privileged @resources"]
    assert all(line.startswith("~") for line in template()["SystemCallFilter"][2:])


@pytest.mark.requirement("AB-41")
def test_the_resources_of_autobot_s_unit_can_be_asked_for():
    found = rendered(limits=RESOURCES)

    assert found["CPUQuota"] == ["50%"]
    assert found["MemoryMax"] == [str(512 << 20)]
    assert found["TasksMax"] == ["64"]
    assert found["LimitNOFILE"] == ["256"]


@pytest.mark.requirement("AB-42")
def test_variables_and_secrets_are_the_server_s_own_and_its_log_too():
    found = rendered(env={"LEVEL": "info"}, credentials={"KEY": "service-key"})

    assert '"MCP_BRIDGE_ENV_LEVEL=info"' in found["Environment"]
    assert found["LoadCredential"] == ["KEY:/etc/credstore/service-key"]
    assert template()["SyslogIdentifier"] == ["mcp-bridge@%i"]


@pytest.mark.requirement("AB-43")
def test_the_page_maps_each_of_autobot_s_variables_to_what_there_is():
    named = re.findall(r"^\| `([a-z_]+)` \| (.+) \|$", SECTION.split("Its sizes")[0], re.MULTILINE)
    keys = {*leaf_keys(ServerSpec), "credentials", "env"}
    for _, ours in named:
        assert set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)?)`", ours)) <= keys, ours

    assert {name for name, _ in named} == {
        *("mcp_bridge_cpu_limit", "mcp_bridge_mem_limit_mb", "mcp_bridge_nofile_limit"),
        *("mcp_bridge_cpu_quota", "backend_user", "backend_group", "backend_code_dir"),
        *("backend_install_dir", "backend_log_dir", "service_auth_keys_dir"),
    }


@pytest.mark.requirement("AB-44")
def test_the_page_s_sizes_are_definitions_that_units_take():
    block = SECTION.split("```json\n", 1)[1].split("```", 1)[0]
    sizes = {server["name"]: server for server in json.loads(block)["servers"]}

    assert {*sizes} == {"filesystem", "browser", "vnc"}
    told = {
        name: (
            *(server["limits"][key] for key in ("cpu", "memory", "open_files")),
            server["timeouts"]["call"],
        )
        for name, server in sizes.items()
    }
    assert told == {
        "filesystem": ("50%", "512M", 256, "30s"),
        "browser": ("100%", "1G", 512, "60s"),
        "vnc": ("25%", "256M", 128, "20s"),
    }
    for server in sizes.values():
        server["command"] = ["/usr/bin/thing"]  # which is resolved before a unit is made
        assert rendered(**server)["CPUQuota"] == [server["limits"]["cpu"]]
