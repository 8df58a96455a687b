"""What the roles say of themselves and of the program is so; no host is needed."""

import re
import subprocess

from autobot_mcp_bridge.units.host import static
from rollout.playbooks import BIN
from rules.tree import ROOT


def test_each_role_s_readme_and_defaults_are_what_its_argument_specs_say(need):
    python = need(str(BIN / "python"))
    words = [python, "tools/role_readme.py", "--check"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_role_has_every_unit_enabled_that_an_installation_enables():
    text = (ROOT / "roles/mcp_bridge_host/vars/main.yml").read_text(encoding="utf-8")
    units = re.findall(r"^  - (\S+)$", text.split("_mcp_bridge_host_units:", 1)[1], re.MULTILINE)

    assert sorted(units) == sorted(static.ENABLED)
