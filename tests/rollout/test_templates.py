"""Every template of templates/ is the same text, rendered by Ansible or by the program."""

import json
from dataclasses import asdict, is_dataclass

import pytest

from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units import render
from autobot_mcp_bridge.units.sandbox.confinement import Facts
from rollout.playbooks import BIN, ansible
from rules.tree import ROOT

FACTS = Facts(are_encrypted=frozenset({"github"}))
SPEC = ServerSpec.model_validate(
    {
        "tenant": "acme",
        "project": "web",
        "name": "files",
        "command": ["/usr/bin/thing", '%h $X \\ "quoted"', "ünï"],
        "env": {"LEVEL": "in fo", "EMPTY": ""},
        "credentials": {"TOKEN": "github", "OTHER": "plain"},
        "paths": {"read": ["/srv/a b"], "write": ["/home/x"]},
        "groups": ["acme"],
        "root": {"directory": "/srv/images/100%"},
        "limits": {"memory": "64M", "memory_high": "32M", "cpu": "150%", "cpu_weight": 20},
        "profile": "browser",
        "network": {"mode": "list", "allow": ["192.0.2.7", "2001:db8::/32"]},
    }
)
# What each is rendered with; a template that is not here fails the test below.
VALUES = {
    "50-mcp-bridge.conf.j2": render.context(SPEC, Command(SPEC.command), FACTS),
    "listen.conf.j2": {"address": "192.0.2.7:8770", "loopback": False},
    "watch.conf.j2": {"folders": ["/etc/letsencrypt/live/a", "/srv/100% of it"]},
    "environment.j2": {"variables": {"PIP_INDEX_URL": "https://a:b@mirror/'<&>", "EMPTY": ""}},
    "host.toml.j2": {
        "tables": {
            "listen": {"port": 8770, "beyond_loopback": True},
            "http": {"allowed_hosts": ["bücher.example", 'a"b']},
            "limits": {"session_idle": "1h"},
            "tls": {"certificate": "/etc/tls/a.pem", "key": "mcp-key"},
        }
    },
}


def plain(value):
    if is_dataclass(value):
        return asdict(value)
    return {**value.model_dump(mode="json"), "instance": value.instance}


@pytest.fixture(scope="module")
def rendered(need, tmp_path_factory):
    """What Ansible makes of all of them, in one run."""
    need(str(BIN / "ansible-playbook"))
    folder = tmp_path_factory.mktemp("templates")
    tasks = [
        {
            "ansible.builtin.template": {
                "src": str(ROOT / "templates" / name),
                "dest": str(folder / name),
                "mode": "0644",
            },
            "vars": json.loads(json.dumps(values, default=plain)),
        }
        for name, values in VALUES.items()
    ]
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks}
    playbook = folder / "playbook.yml"
    playbook.write_text(json.dumps([play]), encoding="utf-8")
    plugins = ROOT / "tests" / "rollout" / "filter_plugins"
    run = ansible("ansible-playbook", str(playbook), ANSIBLE_FILTER_PLUGINS=str(plugins))
    run.checked()
    return folder


def test_every_template_is_compared():
    assert {path.name for path in (ROOT / "templates").glob("*.j2")} == VALUES.keys()


@pytest.mark.parametrize("name", VALUES)
def test_ansible_and_the_program_render_the_same_bytes(rendered, name):
    assert (rendered / name).read_bytes() == render.template(name).render(VALUES[name]).encode()
