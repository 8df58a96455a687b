"""The archive is bounded, private, and says what is not in it."""

import json
import stat
import sys
import tarfile
import time

import pytest

from autobot_mcp_bridge.config.errors import DataError, UnavailableError
from autobot_mcp_bridge.diagnosis.support.bundle import MOST_BYTES, Bundle
from autobot_mcp_bridge.diagnosis.support.parts import output


@pytest.fixture
def bundle():
    return Bundle("root", time.monotonic() + 60)


def written(bundle, path):
    bundle.write(path, {"version": "1"})
    with tarfile.open(path) as archive:
        names = archive.getnames()
        texts = {name: archive.extractfile(name).read().decode() for name in names}
    return json.loads(texts["root/manifest.json"]), texts


def refuses():
    raise UnavailableError("it is away")


def nests():
    return json.loads("[" * 100_000)


def quotes():
    return json.loads('{"secret": ')


def test_a_part_that_fails_is_told_and_the_rest_is_there(bundle, tmp_path):
    bundle.add("one.txt", lambda: "one")
    bundle.add("away.txt", refuses)
    bundle.add("broken.json", quotes)
    bundle.add("deep.json", nests)
    manifest, texts = written(bundle, tmp_path / "b.tar.gz")

    assert texts["root/one.txt"] == "one"
    assert {*texts} == {"root/manifest.json", "root/one.txt"}
    assert bundle.left_out == ["away.txt", "broken.json", "deep.json"]
    reasons = {entry["file"]: entry.get("left_out", "") for entry in manifest["files"]}
    assert reasons["away.txt"] == "UnavailableError: it is away"
    assert "secret" not in reasons["broken.json"]


def test_of_a_long_part_the_end_is_kept(bundle, tmp_path):
    bundle.add("long.txt", lambda: "x" * MOST_BYTES + "the end")
    manifest, texts = written(bundle, tmp_path / "b.tar.gz")

    assert len(texts["root/long.txt"]) == MOST_BYTES
    assert texts["root/long.txt"].endswith("the end")
    assert manifest["files"][0]["cut_from_the_beginning"] == 7


def test_after_the_deadline_nothing_more_is_collected(tmp_path):
    late = Bundle("root", time.monotonic() - 1)
    late.add("one.txt", lambda: "one")

    assert late.left_out == ["one.txt"]


def test_it_is_for_its_owner_alone_and_replaces_nothing(bundle, tmp_path):
    path = tmp_path / "b.tar.gz"
    bundle.write(path, {})

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(DataError, match="is there already"):
        bundle.write(path, {})


def test_of_a_command_that_says_too_much_the_last_whole_lines_are_held():
    script = "import sys\nfor n in range(9): sys.stdout.write(str(n) * 999 + chr(10))"

    shown = output([sys.executable, "-c", script], most=2500)

    assert shown == f"{'7' * 999}\n{'8' * 999}\n"
    assert len(output([sys.executable, "-c", script])) == 9000
