"""What a host lacks is found before anything on it is changed."""

import json
import platform
import re
import sys

import pytest

from lab import recipe
from rollout.playbooks import BIN, Rollout, ansible
from rules.tree import ROOT
from support.bridge import new_token
from support.footprint import listing
from support.product import Product, digest_of

FAKES = "/opt/mcp-servers"
# Stands for npm's: what it is asked to run is of no interest here, only that it is there and starts.
NPX = f"#!/bin/sh\nexec /usr/bin/python3 {FAKES}/echo.py\n"


@pytest.fixture
def hosts(lab, need, tmp_path):
    """Two bare hosts: the first without npx, the second with it."""
    need(str(BIN / "ansible-playbook"))
    made = Rollout(lab, tmp_path, {f"pre-{suite}": suite for suite in recipe.SUITES})
    containers = made.up()
    try:
        containers[1].copy(ROOT / "tests" / "servers", FAKES)
        containers[1].write("/usr/local/bin/npx", NPX, mode=0o755)
        yield made, containers
    finally:
        for container in containers:
            container.down()


def left(container):
    """What lies on a host, but for the marks of Ansible's login."""
    marks = ("home/admin/.ansible", "var/lib/sudo", "run/")
    return {line for line in listing(container) if not line.startswith(marks)}


@pytest.mark.lab
@pytest.mark.network
async def test_a_profile_whose_program_is_missing_is_refused_before_anything_is_changed(hosts):
    rollout, (without, with_it) = hosts
    lacking, _ = rollout.suites
    token = new_token()
    live = {"name": "live", "command": ["npx", "-y", "some-server"], "profile": "npx"}
    definitions = [{**live, "tokens_sha256": [digest_of(token)]}]
    assert rollout.run("remove.yml").checked()  # the first login leaves its marks
    before = left(without)
    shown = rollout.run("site.yml", "--check", mcp_bridge_servers_definitions=definitions)
    run = rollout.run("site.yml", mcp_bridge_servers_definitions=definitions)

    for each in (shown, run):
        assert each.status != 0
        assert "live: npx on this host is started each time (profile npx)" in each.output
        assert each.changed[lacking] == 0
    assert left(without) == before
    async with Product(with_it).session("live", token) as client:
        assert await client.text("echo", text="by npx") == "by npx"


UVX = {"name": "clock", "command": ["uvx", "some-server==1.0"]}
NPX_LIVE = {"name": "live", "command": ["npx", "-y", "some-server"], "profile": "npx"}
UVX_LIVE = {**UVX, "profile": "uvx"}
OFF = {"enabled": False}
# Definitions, defaults, programs that are there, architectures with a wheel of node; what is said.
LOOKED_AT = {
    "a profile without its program": ([NPX_LIVE], {}, (), True, "live: npx on this host"),
    "the other one": ([NPX_LIVE, UVX_LIVE], {}, ("npx",), True, "clock: uvx on this host"),
    "by the defaults": ([UVX], {"profile": "uvx"}, (), True, "clock: uvx on this host"),
    "no node at all": ([{**NPX_LIVE, "profile": "node"}], {}, (), False, "no wheel of it for"),
    "both programs": ([NPX_LIVE, UVX_LIVE], {}, ("npx", "uvx"), True, None),
    "node of the host": ([{**NPX_LIVE, "profile": "node"}], {}, ("node",), False, None),
    "a profile of its own": ([{**UVX, "profile": "python"}], {"profile": "uvx"}, (), True, None),
    "no profile": ([UVX], {}, (), True, None),
    "a server that is off": ([{**NPX_LIVE, **OFF}], {}, (), True, None),
    "all that are off": ([NPX_LIVE, UVX_LIVE], OFF, (), True, None),
    "no server": ([], {}, (), False, None),
}


@pytest.fixture(scope="module")
def looked(need, tmp_path_factory):
    """What each case's host, which is this machine with a PATH of its own, is told: one run."""
    need(str(BIN / "ansible-playbook"))
    folder = tmp_path_factory.mktemp("preflight")
    hosts = {}
    for number, (definitions, defaults, there, has_wheel, _) in enumerate(LOOKED_AT.values()):
        own = folder / f"case{number}"
        own.mkdir()
        for name in there:
            (own / name).write_text("#!/bin/sh\n", encoding="utf-8")
            (own / name).chmod(0o755)
        hosts[own.name] = {
            "mcp_bridge_servers_definitions": definitions,
            "mcp_bridge_servers_defaults": defaults,
            "path": str(own),
            "architectures": [platform.machine()] if has_wheel else [],
        }
    everywhere = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    inventory = {"all": {"hosts": hosts, "vars": everywhere}}
    (folder / "hosts.json").write_text(json.dumps(inventory), encoding="utf-8")
    role = {"name": "mcp_bridge_servers", "tasks_from": "launchers.yml"}
    variables = {
        "_mcp_bridge_servers_path": "{{ path }}",
        "_mcp_bridge_servers_node_architectures": "{{ architectures }}",
    }
    play = {"hosts": "all", "gather_facts": False}
    play["tasks"] = [{"import_role": role, "vars": variables}]
    (folder / "look.yml").write_text(json.dumps([play]), encoding="utf-8")
    words = ("--inventory", str(folder / "hosts.json"), "--forks", "2", str(folder / "look.yml"))
    run = ansible("ansible-playbook", *words)
    told = dict(re.findall(r"^fatal: \[(\w+)\]: (.*)", run.output, re.MULTILINE))
    assert run.changed.keys() == hosts.keys(), run.output
    return {case: told.get(f"case{number}") for number, case in enumerate(LOOKED_AT)}


@pytest.mark.requirement("NV-16")
@pytest.mark.parametrize("case", LOOKED_AT)
def test_the_host_must_have_what_its_servers_start_with(looked, case):
    said = LOOKED_AT[case][-1]
    if said is None:
        assert looked[case] is None
    else:
        assert said in looked[case]
