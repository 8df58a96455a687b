"""What is built and what is documented agree with the code."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile

from autobot_mcp_bridge.model.errors import Cause
from rules.tree import PACKAGE, ROOT

ROW = re.compile(r"^\|\s*`([a-z_]+)`\s*\|\s*(\d{3})\s*\|\s*(-\d+)\s*\|", re.MULTILINE)


def build(folder):
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_the_package_with_its_templates_and_nothing_beside_it(tmp_path):
    files = build(tmp_path)
    name = PACKAGE.name

    templates = {
        str(path.relative_to(ROOT / "templates"))
        for path in (ROOT / "templates").rglob("*")
        if path.is_file()
    }
    prefix = f"{name}/_templates/"
    packed = {path.removeprefix(prefix) for path in files if path.startswith(prefix)}
    assert packed == templates
    assert f"{name}/py.typed" in files
    assert {path.split("/")[0].split("-")[0] for path in files} == {name}


def test_the_wheel_installs_the_command_line():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert project["scripts"] == {"mcp-bridge": "autobot_mcp_bridge.cli.main:main"}
    assert (PACKAGE / "cli" / "main.py").exists()


def test_the_architecture_page_shows_the_table_of_errors_as_it_is():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    shown = {(word, int(status), int(code)) for word, status, code in ROW.findall(page)}

    assert shown == {(cause.word, cause.status, cause.code) for cause in Cause}


def test_the_examples_pass_the_check(tmp_path):
    config = tmp_path / "config"
    config.mkdir()
    servers = (ROOT / "examples" / "servers.json").read_bytes()
    (config / "servers.json").write_bytes(servers)
    places = [f"--{name}-dir={tmp_path / name}" for name in ("config", "state", "runtime")]
    done = subprocess.run(
        [sys.executable, "-m", "autobot_mcp_bridge.cli.main", "check", *places],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
