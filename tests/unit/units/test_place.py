"""Laying the product below a root directory, packing what runs, and taking it off again."""

import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PathDistribution

import pytest

from autobot_mcp_bridge.cli.main import main
from autobot_mcp_bridge.units.host import place, program, source, static
from autobot_mcp_bridge.units.host.install import Installer
from autobot_mcp_bridge.units.host.uninstall import Uninstaller
from autobot_mcp_bridge.units.packages.job import InstallError
from rules.tree import ROOT

PAGES = ("man/man1/mcp-bridge.1", "bash-completion/completions/mcp-bridge")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A root directory for installs whose venv is there already: pip runs in the lab's tests."""
    monkeypatch.setattr(program, "PYTHON", sys.executable)
    made = tmp_path / "root"
    made.mkdir()
    venv = made / place.HOME / f"venv-{source.digest()}-{sys.implementation.cache_tag}"
    venv.mkdir(parents=True)
    (venv / program.COMPLETE).touch()
    # As the program writes them, once: its commands in a shell are tests/connect/test_shells.py's.
    for name in PAGES:
        page = venv / "pages" / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(name)
    return made


def install(root):
    said = []
    return Installer(root, said.append).install({}, None), said


def test_an_install_below_a_root_lays_every_file_and_link(root):
    done, said = install(root)

    assert done
    for name, path in static.FILES.items():
        laid = root / path
        assert laid.read_bytes() == (ROOT / "templates" / name).read_bytes()
        assert laid.stat().st_mode & 0o777 == 0o644
        assert any(path in line for line in said)
    assert str((root / "usr/bin/mcp-bridge").readlink()) == (
        "../lib/mcp-bridge/venv/bin/mcp-bridge"
    )
    assert (root / "usr/lib/mcp-bridge/venv" / program.COMPLETE).exists()


def test_pages_and_completions_lie_where_man_and_shells_look(root):
    install(root)

    for name in PAGES:
        laid = root / "usr/share" / name
        assert laid.read_text() == name
        assert laid.stat().st_mode & 0o777 == 0o644
        assert f"usr/share/{name}" in place.read_manifest(root).files


def test_a_page_of_a_command_that_is_gone_goes_and_uninstall_needs_no_manifest(root):
    install(root)
    (root / "usr/lib/mcp-bridge/venv/pages" / PAGES[0]).unlink()
    assert install(root)[0]
    assert not (root / "usr/share" / PAGES[0]).exists()

    left = root / "usr/share/man/man1/mcp-bridge-old.1"
    others = root / "usr/share/man/man1/other.1"
    for path in (left, others):
        path.write_text("")
    (root / place.MANIFEST).unlink()
    Uninstaller(root, print).uninstall()
    assert [path for path in root.rglob("*") if not path.is_dir()] == [others]
    assert not (root / "usr/share/bash-completion").exists()


def test_a_second_install_changes_nothing_and_says_nothing(root):
    install(root)
    before = {path: path.lstat().st_mtime_ns for path in root.rglob("*")}

    assert install(root) == (False, [])
    assert {path: path.lstat().st_mtime_ns for path in root.rglob("*")} == before


def test_an_install_mends_what_was_changed_and_removes_what_is_of_an_older_version(root):
    install(root)
    old = root / "usr/lib/systemd/system/mcp-bridge-old.service"
    old.write_text("")
    manifest = place.read_manifest(root)
    names = (*manifest.files, "usr/lib/systemd/system/mcp-bridge-old.service")
    place.write_manifest(root, place.Manifest("0", names, manifest.enabled))
    changed = root / static.FILES["launch.py"]
    changed.write_text("other")
    other = root / place.HOME / "venv-other"
    other.mkdir()

    done, said = install(root)
    assert done
    assert len(said) == 2
    assert not old.exists()
    assert not other.exists()
    assert changed.read_text() != "other"


def test_files_of_a_package_are_left_to_it(root):
    assert Installer(root, print, "some-package").install({}, None)
    before = {path: path.lstat().st_mtime_ns for path in root.rglob("*")}

    for change in (lambda: install(root), Uninstaller(root, print).uninstall):
        with pytest.raises(place.PackagedError, match="installed by the package some-package"):
            change()
    assert {path: path.lstat().st_mtime_ns for path in root.rglob("*")} == before


def test_files_become_a_packages_below_a_root_directory_only(capsys):
    assert main(["install", "--package", "some-package"]) == 64
    assert "--root DIR" in capsys.readouterr().err


def test_uninstall_leaves_nothing_below_the_root_but_what_is_of_others(root):
    install(root)
    others = root / "etc/systemd/system/multi-user.target.wants/other.service"
    ours = root / "etc/systemd/system/autobot-mcp-bridge@a.service.d/90-own.conf"
    for path in (others, ours, root / "var/lib/mcp-bridge/tokens.d/a.json"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    said = []

    assert Uninstaller(root, said.append, keep_data=True).uninstall()
    files = {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}
    assert files == {
        str(path.relative_to(root))
        for path in (others, root / "var/lib/mcp-bridge/tokens.d/a.json")
    }
    assert Uninstaller(root, said.append).uninstall()
    assert [path for path in root.rglob("*") if not path.is_dir()] == [others]
    assert not Uninstaller(root, said.append).uninstall()


def test_a_wheel_that_is_packed_again_holds_the_same_files(tmp_path):
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(words, cwd=ROOT, capture_output=True, check=True)
    (built,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(tmp_path / "site")
        wanted = {name: archive.read(name) for name in archive.namelist()}
    (info,) = (tmp_path / "site").glob("*.dist-info")
    again = source.repack(PathDistribution(info), tmp_path / "site")

    with zipfile.ZipFile(again) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    assert again.name == built.name
    assert {k: v for k, v in found.items() if "RECORD" not in k and "licenses" not in k} == {
        k: v for k, v in wanted.items() if "RECORD" not in k and "licenses" not in k
    }


def test_a_package_that_has_lost_a_file_is_not_packed(tmp_path):
    info = tmp_path / "autobot_mcp_bridge-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: autobot-mcp-bridge\nVersion: 1\n")
    (info / "RECORD").write_text("autobot_mcp_bridge/gone.py,,\n")
    with pytest.raises(InstallError, match=r"gone\.py: No such file"):
        source.repack(PathDistribution(info), tmp_path)


def test_what_is_installed_where_there_is_a_wheel_is_an_extra_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    extras = project["optional-dependencies"]
    wanted = ("speed", "oauth", "import", "policy", "redis")
    assert set(program.OPTIONAL) <= {each for name in wanted for each in extras[name]}


def test_the_installation_needs_the_standard_library_only():
    code = "import sys; import autobot_mcp_bridge.cli.install; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(ROOT / "supervisor"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    tops = {name.split(".")[0] for name in done.stdout.split()}
    assert {name for name in tops if name not in sys.stdlib_module_names} <= {
        "__main__",
        "autobot_mcp_bridge",
    }
