"""What the roles say of themselves and of the program is so; no host is needed."""

import re
import subprocess

import yaml

from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.units.host import static
from rollout.playbooks import BIN
from rules.tree import ROOT


def test_each_role_s_readme_and_defaults_are_what_its_argument_specs_say(need):
    python = need(str(BIN / "python"))
    words = [python, "tools/role_readme.py", "--check"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_role_takes_every_table_that_host_toml_may_have():
    text = (ROOT / "roles/mcp_bridge_host/meta/argument_specs.yml").read_text(encoding="utf-8")
    options = yaml.safe_load(text)["argument_specs"]["main"]["options"]

    taken = options["mcp_bridge_host_config"]["options"]
    assert sorted(taken) == sorted(HostSettings.model_fields)


def test_the_role_has_every_unit_enabled_that_an_installation_enables():
    text = (ROOT / "roles/mcp_bridge_host/vars/main.yml").read_text(encoding="utf-8")
    units = re.findall(r"^  - (\S+)$", text.split("_mcp_bridge_host_units:", 1)[1], re.MULTILINE)

    assert sorted(units) == sorted(static.ENABLED)
