"""A molecule that hangs is ended, and what it has left is removed; no host is needed."""

import signal

import run_molecule
from lab.places import Lab
from support.proc import alive

HANGS = """#!/bin/sh
cd "$(dirname "$0")"
echo "$1" >> words
[ "$1" = test ] || exit 0
echo 'INFO     default ➜ converge: Executing'
sleep 600 &
echo $! > pid
wait
"""


def test_one_that_hangs_is_ended_at_its_deadline_and_its_containers_are_removed(
    tmp_path, monkeypatch, capsys
):
    program = tmp_path / "molecule"
    program.write_text(HANGS, encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(run_molecule, "BIN", tmp_path)
    monkeypatch.setattr(run_molecule, "DEADLINE", 1.0)

    status = run_molecule.run(Lab.of_process(), "default", ["test"], tmp_path)

    assert status == signal.SIGKILL
    assert (tmp_path / "words").read_text(encoding="utf-8").split() == ["test", "destroy"]
    assert not alive(int((tmp_path / "pid").read_text(encoding="utf-8")))
    said = capsys.readouterr().out
    assert "default: not done after 1 s" in said
    assert "default ➜ converge" in said
