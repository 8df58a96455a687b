"""The repository's shape: folders, module sizes, and what no file may hold."""

import re
import statistics
import subprocess

import pytest

from rules.tree import PACKAGE, ROOT, modules, shown, tracked

FOLDERS = ("supervisor", "templates", "roles", "playbooks", "molecule", "tests")
MEDIAN_LINES = 170
MOST_LINES = 500
# Parts are joined so that this file does not hold what it looks for.
MACHINE_PATHS = ("/wo" + "rk/", "/root/" + ".pyenv")
REGISTRIES = ("registry." + "npmjs.org", "pypi" + ".org", "files." + "pythonhosted.org")
# How many of these comments there are at most; raise one only together with its reason.
ALLOWED = {"type: ignore": 40, "noqa": 40, "pragma": 5}
COMMENT = re.compile(r"#\s*(type: ignore|noqa|pragma)(.*)")
CODED = {
    "type: ignore": re.compile(r"\[[a-z-]+(, ?[a-z-]+)*\]"),
    "noqa": re.compile(r": [A-Z]+[0-9]+(, ?[A-Z]+[0-9]+)*"),
    "pragma": re.compile(r": no cover"),
}


def lines(path):
    return path.read_text(encoding="utf-8").count("\n")


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_of_the_mission_exists_and_says_what_stands_in_it(folder):
    assert (ROOT / folder).is_dir()
    held = [path for path in tracked() if path.is_relative_to(ROOT / folder)]
    assert held, f"{folder} is empty"


def test_supervisor_is_a_source_root_with_exactly_one_package():
    source = ROOT / "supervisor"
    folders = {path.name for path in source.iterdir() if not path.name.startswith((".", "__"))}

    assert not (source / "__init__.py").exists()
    assert {name for name in folders if not name.endswith(".egg-info")} == {PACKAGE.name}


def test_the_templates_are_the_same_files_for_package_and_roles():
    assert (PACKAGE / "_templates").is_symlink()
    assert (PACKAGE / "_templates").resolve() == ROOT / "templates"


def test_modules_are_small():
    sizes = {shown(module): lines(module) for module in modules() if lines(module)}

    assert statistics.median(sizes.values()) <= MEDIAN_LINES
    assert [name for name, size in sizes.items() if size > MOST_LINES] == []


def test_no_test_module_is_above_the_limit_either():
    folders = (ROOT / "tests", ROOT / "bench")
    python = [path for path in tracked() if path.suffix == ".py"]
    ours = [path for path in python if any(path.is_relative_to(folder) for folder in folders)]

    assert [shown(path) for path in ours if lines(path) > MOST_LINES] == []


def texts():
    for path in tracked():
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # not a text


@pytest.mark.parametrize("word", MACHINE_PATHS)
def test_no_file_holds_a_path_of_one_machine(word):
    assert [shown(path) for path, text in texts() if word in text] == []


@pytest.mark.parametrize("word", REGISTRIES)
def test_no_file_holds_the_name_of_a_registry(word):
    assert [shown(path) for path, text in texts() if word in text] == []


def exceptions():
    for path, text in texts():
        if path.suffix == ".py":
            for number, line in enumerate(text.splitlines(), 1):
                if match := COMMENT.search(line):
                    yield f"{shown(path)}:{number}", match[1], match[2]


def test_an_exception_from_a_check_names_its_code():
    found = [where for where, kind, rest in exceptions() if not CODED[kind].match(rest)]

    assert found == []


@pytest.mark.parametrize("kind", ALLOWED)
def test_exceptions_from_checks_stay_few(kind):
    found = [where for where, other, _ in exceptions() if other == kind]

    assert len(found) <= ALLOWED[kind], found


def test_tests_neither_sleep_nor_are_left_out():
    # Put together here for the same reason as above. waiting.py is the one poller; storm.py tells
    # its progress every few seconds and waits for nothing.
    forbidden = re.compile(
        r"\b(asyncio|time|anyio)\." + r"sleep\(|mark\." + r"(skip|skipif|xfail)\b"
    )
    allowed = {"tests/support/waiting.py", "tests/support/storm.py"}
    found = [
        f"{shown(path)}:{number}"
        for path, text in texts()
        if path.suffix == ".py" and path.is_relative_to(ROOT / "tests")
        # The hostile servers of tests/servers are slow on purpose.
        if not path.is_relative_to(ROOT / "tests" / "servers") and shown(path) not in allowed
        for number, line in enumerate(text.splitlines(), 1)
        if forbidden.search(line)
    ]

    assert found == []


def shell_scripts():
    for path, text in texts():
        first = text.split("\n", 1)[0]
        if path.suffix == ".sh" or (first.startswith("#!") and re.search(r"\b(ba|da)?sh\b", first)):
            yield path


def test_there_is_a_shell_script_to_check():
    assert list(shell_scripts())


@pytest.mark.parametrize("path", list(shell_scripts()), ids=shown)
def test_a_shell_script_parses(path):
    shell = "bash" if "bash" in path.read_text(encoding="utf-8").split("\n", 1)[0] else "sh"
    done = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
