"""Which files a server's uid could execute, and where programs are found."""

import sys
from pathlib import Path

import pytest

from autobot_mcp_bridge.units.access.reach import blocked_at, find_program, in_reach
from autobot_mcp_bridge.units.packages.job import InstallError
from autobot_mcp_bridge.units.packages.plain import plain_command


def script(path, text="#!/bin/sh\n", mode=0o755):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.fixture
def open_dir(tmp_path_factory):
    """A directory that every uid can pass, below one that pytest keeps to itself."""
    folder = tmp_path_factory.mktemp("open")
    for directory in (folder, *folder.parents):
        if directory.stat().st_mode & 0o001 == 0:
            directory.chmod(0o755)
    return folder


def test_a_program_of_the_system_is_in_reach():
    assert blocked_at(Path("/bin/sh")) is None


def test_a_directory_that_others_may_not_enter_is_named(open_dir):
    program = script(open_dir / "private" / "tool")
    program.parent.chmod(0o700)

    assert blocked_at(program) == program.parent


def test_a_link_into_a_private_directory_is_no_way_in(open_dir):
    program = script(open_dir / "private" / "tool")
    program.parent.chmod(0o700)
    link = open_dir / "tool"
    link.symlink_to(program)

    assert blocked_at(link) == program.parent


def test_a_script_counts_with_its_interpreter(open_dir):
    interpreter = script(open_dir / "private" / "python")
    interpreter.parent.chmod(0o700)

    assert blocked_at(script(open_dir / "tool", f"#!{interpreter}\n")) == interpreter.parent


def test_a_file_that_others_may_not_execute_is_named(open_dir):
    program = script(open_dir / "tool", mode=0o700)

    assert blocked_at(program) == program


def test_as_root_the_refusal_holds_the_command_that_helps(open_dir, monkeypatch):
    monkeypatch.setattr("autobot_mcp_bridge.units.access.reach.is_root", lambda: True)
    program = script(open_dir / "private" / "tool")
    program.parent.chmod(0o700)

    with pytest.raises(InstallError, match=f"chmod o\\+x {program.parent}"):
        in_reach(program)


def test_an_ordinary_user_runs_what_it_can_run_itself(open_dir, monkeypatch):
    monkeypatch.setattr("autobot_mcp_bridge.units.access.reach.is_root", lambda: False)
    program = script(open_dir / "private" / "tool")
    program.parent.chmod(0o700)

    assert in_reach(program) == program


def test_a_plain_command_becomes_an_absolute_path_found_over_the_callers_path(open_dir):
    program = script(open_dir / "bin" / "some-tool")

    command = plain_command(["some-tool", "-x"], {"PATH": str(program.parent)})

    assert command.argv == (str(program), "-x")


def test_a_program_that_is_not_there_is_refused_with_the_path_that_was_searched(tmp_path):
    with pytest.raises(InstallError, match=f"no-such-tool.*searched: .*{tmp_path}"):
        plain_command(["no-such-tool"], {"PATH": str(tmp_path)})


def test_the_directory_of_this_python_is_searched_after_path(tmp_path):
    name = Path(sys.executable).name
    assert find_program(name, {"PATH": str(tmp_path)}) == Path(sys.executable)

    on_path = script(tmp_path / name)
    assert find_program(name, {"PATH": str(tmp_path)}) == on_path
