"""What is built and what is documented agree with the code."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile

from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.death import DeathCause
from autobot_mcp_bridge.model.errors import Cause
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.host import static
from autobot_mcp_bridge.units.render import drop_in
from rules.tree import PACKAGE, ROOT

CAUSE = re.compile(r"^\| `([a-z_]+)` \|", re.MULTILINE)
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
        archive.extractall(folder / "installed")
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_the_package_with_its_templates_and_nothing_beside_it(tmp_path):
    files = build(tmp_path)
    name = PACKAGE.name

    templates = {
        str(path.relative_to(ROOT / "templates"))
        for path in (ROOT / "templates").rglob("*")
        # A wheel holds no symlinks: installing makes the aliases anew.
        if path.is_file() and not path.is_symlink() and path.suffix != ".pyc"
    }
    prefix = f"{name}/_templates/"
    packed = {path.removeprefix(prefix) for path in files if path.startswith(prefix)}
    assert packed == templates
    assert f"{name}/py.typed" in files
    assert {path.split("/")[0].split("-")[0] for path in files} == {name}


def test_an_installed_wheel_renders_what_the_checkout_renders(tmp_path):
    build(tmp_path)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from autobot_mcp_bridge.model.command import Command;"
        "from autobot_mcp_bridge.model.server import ServerSpec;"
        "from autobot_mcp_bridge.units import render;"
        "assert render.__file__.startswith(sys.argv[1]), render.__file__;"
        "spec = ServerSpec(name='files', command=('/bin/cat',));"
        "print(render.drop_in(spec, Command(spec.command)), end='')"
    )
    words = [sys.executable, "-c", program, str(tmp_path / "installed")]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    spec = ServerSpec(name="files", command=("/bin/cat",))
    assert done.stdout == drop_in(spec, Command(spec.command))


def test_every_static_file_is_among_the_templates():
    assert all((ROOT / "templates" / name).is_file() for name in static.FILES)
    links = {path.name: str(path.readlink()) for path in (ROOT / "templates").glob("mcp-bridge@*")}
    assert links == {name.rpartition("/")[2]: target for name, target in static.ALIASES.items()}


def test_the_wheel_installs_the_command_line():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert project["scripts"] == {"mcp-bridge": "autobot_mcp_bridge.cli.main:main"}
    assert (PACKAGE / "cli" / "main.py").exists()


def test_the_architecture_page_shows_the_table_of_errors_as_it_is():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    shown = {(word, int(status), int(code)) for word, status, code in ROW.findall(page)}

    assert shown == {(cause.word, cause.status, cause.code) for cause in Cause}


def test_the_architecture_page_shows_the_causes_of_death_as_they_are():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = page.split("Why a server's process ended", 1)[1].split("What the endpoint", 1)[0]

    assert CAUSE.findall(table) == [cause.value for cause in DeathCause]


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
