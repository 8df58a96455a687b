"""The files of accepted tools: whole, private, and never fatal."""

import json
import os
import signal
import subprocess
import sys

import pytest

from autobot_mcp_bridge.config.baselines import Baseline, BaselineFiles, Seen
from autobot_mcp_bridge.config.files import RefusedFileError

ONE = Baseline(
    accepted={"read": (Seen("a" * 64, 1, "x@1", '{"name":"read"}'), Seen("b" * 64, 2))},
    differing={"send": Seen("c" * 64, 3, "x@2")},
    gone={"list"},
    whole=True,
    package="x@2",
)
TWO = Baseline(accepted={"read": (Seen("d" * 64, 4),)}, whole=True)


@pytest.fixture
def files(tmp_path):
    return BaselineFiles(tmp_path / "tools.d")


def test_what_is_written_is_read_again(files):
    assert files.read("acme.files") is None

    files.write("acme.files", ONE)

    assert files.read("acme.files") == ONE
    assert files.read("files") is None


def test_the_file_and_its_directory_are_the_proxy_s_alone(files):
    files.write("files", ONE)

    path = files.path("files")
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"version": 2}',
        json.dumps({"version": 1, "accepted": [], "differing": {}}).encode(),
        json.dumps(
            {
                "version": 1,
                "package": None,
                "whole": True,
                "gone": [],
                "accepted": {"a": []},
                "differing": {},
            }
        ).encode(),
        json.dumps(
            {
                "version": 1,
                "package": 1,
                "whole": True,
                "gone": [],
                "accepted": {},
                "differing": {},
            }
        ).encode(),
    ],
)
def test_a_file_that_is_none_is_told_and_kept_beside(files, text):
    files.write("files", ONE)
    files.path("files").write_bytes(text)

    with pytest.raises(RefusedFileError, match="not what the proxy writes"):
        files.read("files")

    assert files.path("files").with_name("files.json.broken").read_bytes() == text
    assert files.path("files").read_bytes() == text


def test_a_removed_server_leaves_nothing(files):
    files.write("files", ONE)
    files.path("files").write_bytes(b"{")
    with pytest.raises(RefusedFileError):
        files.read("files")
    files.write("other", TWO)

    files.remove("files")
    files.remove("files")

    assert [path.name for path in files.path("files").parent.iterdir()] == ["other.json"]


WRITER = """
import sys
from pathlib import Path
from autobot_mcp_bridge.config.baselines import Baseline, BaselineFiles, Seen
files = BaselineFiles(Path(sys.argv[1]))
both = [Baseline(accepted={f"t{n}": (Seen(c * 64, 1, None, "x" * 400),) for n in range(300)})
        for c in "ab"]
while True:
    for baseline in both:
        files.write("files", baseline)
        print("written", flush=True)
"""


def test_a_writer_that_is_killed_leaves_one_of_both_states(files, tmp_path):
    for writes in range(1, 9):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "tools.d")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ},
        )
        assert writer.stdout is not None
        for _ in range(writes):
            assert writer.stdout.readline() == "written\n"
        writer.send_signal(signal.SIGKILL)
        assert writer.wait(60) == -signal.SIGKILL
        writer.stdout.close()

        baseline = files.read("files")

        digests = {every[0].digest for every in baseline.accepted.values()}
        assert len(baseline.accepted) == 300
        assert digests in ({"a" * 64}, {"b" * 64})
