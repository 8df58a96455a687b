"""The recorder alone: what the lab's machines do not have (cgroup v2 with memory), and a slow journal."""

import importlib.util
import json
import os
import threading

import pytest

from rules.tree import ROOT
from support.waiting import until

INVOCATION = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def ended(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("ended", ROOT / "templates" / "ended.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ENDED", str(tmp_path / "ended"))
    monkeypatch.setattr(module, "CGROUPS", str(tmp_path / "cgroup"))
    monkeypatch.setattr(module, "JOURNAL", str(tmp_path / "nothing"))
    (tmp_path / "ended").mkdir()
    for name, text in {"INVOCATION_ID": INVOCATION, "SERVICE_RESULT": "signal"}.items():
        monkeypatch.setenv(name, text)
    return module


def lay(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")


@pytest.mark.parametrize(
    ("groups", "file", "text", "kills"),
    [
        ("0::/a.slice/x\n", "a.slice/x/memory.events", "low 0\noom 1\noom_kill 2\n", 2),
        ("4:memory:/x\n0::/x\n", "memory/x/memory.oom_control", "under_oom 0\noom_kill 3\n", 3),
        ("5:cpu,cpuacct:/x\n4:memory:/x\n0::/x\n", "x/memory.events", "oom_kill 1\n", 1),
        ("0::/x\n", "x/cgroup.procs", "", 0),
        ("0::/x\n", "x/memory.events", "low 0\n", 0),
        ("", "x", "", 0),
    ],
)
def test_kills_for_memory_are_read_from_either_kind_of_cgroup(
    ended, tmp_path, groups, file, text, kills
):
    lay(tmp_path / "cgroup" / file, text)

    assert ended.oom_kills(groups) == kills


def test_a_slow_journal_holds_up_the_lines_and_not_the_record(ended, tmp_path, monkeypatch, need):
    need("root")  # the record is given to root
    os.mkfifo(tmp_path / "gate")
    lay(tmp_path / "journalctl", f"#!/bin/sh\ncat {tmp_path}/gate\n")
    (tmp_path / "journalctl").chmod(0o755)
    monkeypatch.setattr(ended, "JOURNALCTL", str(tmp_path / "journalctl"))
    monkeypatch.setattr(ended, "LAST_WAIT", 30.0)
    record = tmp_path / "ended" / f"{INVOCATION}.json"
    thread = threading.Thread(target=ended.main, args=("files",))
    thread.start()
    try:
        assert until(record.exists)
        first = json.loads(record.read_bytes())
    finally:
        (tmp_path / "gate").write_bytes(b"late\nwords\n")
        thread.join(30)

    assert first["stderr"] is None and first["result"] == "signal"
    assert json.loads(record.read_bytes()) == {**first, "stderr": ["late", "words"]}


def test_a_journal_that_never_answers_is_left(ended, tmp_path, monkeypatch, need):
    need("root")
    os.mkfifo(tmp_path / "gate")
    lay(tmp_path / "journalctl", f"#!/bin/sh\nexec cat {tmp_path}/gate\n")
    (tmp_path / "journalctl").chmod(0o755)
    monkeypatch.setattr(ended, "JOURNALCTL", str(tmp_path / "journalctl"))
    monkeypatch.setattr(ended, "LAST_WAIT", 0.3)

    ended.main("files")

    assert json.loads((tmp_path / "ended" / f"{INVOCATION}.json").read_bytes())["stderr"] is None


@pytest.mark.parametrize("instance", ["../x", "..", "a/b"])
def test_an_instance_that_is_no_name_is_refused(ended, instance):
    with pytest.raises(ValueError, match="not started by systemd"):
        ended.main(instance)


def test_a_record_is_json_whatever_a_line_holds(ended):
    lines = ['"', "\\", "\x00\x1b\x7f", "é\ufffd", "\u2028"]

    assert json.loads(ended.encode({"a": 'x"', "b": 3}, lines)) == {
        "a": 'x"',
        "b": 3,
        "stderr": lines,
    }


DROP_IN = """[Service]
LoadCredential=THERE:{root}/there
LoadCredential=GONE.file:{root}/go%%ne
LoadCredentialEncrypted=SEALED:{root}/sealed
"""


def test_the_credential_that_has_no_file_is_named_from_the_drop_ins(ended, tmp_path, monkeypatch):
    lay(tmp_path / "unit" / "50-mcp-bridge.conf", DROP_IN.format(root=tmp_path))
    lay(tmp_path / "unit" / "90-own.conf", "[Service]\nLoadCredential=HOST\n")
    lay(tmp_path / "there", "x")
    lay(tmp_path / "sealed", "x")
    lost = f"GONE: there is no {tmp_path}/go%ne"
    folder = str(tmp_path / "unit")
    assert ended.lost_credentials(folder) == lost

    monkeypatch.setattr(ended, "STORES", (str(tmp_path),))
    assert ended.lost_credentials(folder) == f"{lost}; run: mcp-bridge secret set go%ne"

    lay(tmp_path / "go%ne", "x")
    told = "the files are there; this host cannot decrypt one of sealed"
    assert ended.lost_credentials(folder) == told
    assert ended.lost_credentials(str(tmp_path / "nowhere")) == ""


def test_the_values_of_credentials_and_their_lines_are_looked_for_the_longest_first(
    ended, tmp_path
):
    lay(tmp_path / "c" / "A", "a secret\n")
    lay(tmp_path / "c" / "B.file", "first line\nsecond, longer\nshort\n")

    assert ended.secret_values(str(tmp_path / "c")) == [
        b"first line\nsecond, longer\nshort",
        b"second, longer",
        b"first line",
        b"a secret",
    ]
    assert ended.secret_values(str(tmp_path / "nowhere")) == []
