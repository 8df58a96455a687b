"""gc without systemd: what removed servers have left goes when asked, and is told before."""

import json

import pytest

from autobot_mcp_bridge.config import disk
from support.configured import SMALL, write_servers, write_text


def left(places, name):
    path = places.state_dir / "default" / "-" / name / "file"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * 100_000)
    return path


def test_files_of_a_removed_server_go_only_with_the_word_for_it(places, run):
    write_servers(places, SMALL)
    gone, kept = left(places, "gone"), left(places, SMALL["name"])

    assert run("gc") == (0, "nothing to remove\n", "")
    assert run("gc", "--quiet") == (0, "", "")

    status, out, _ = run("gc", "--state", "--dry-run", "--json")
    (row,) = json.loads(out)["would_remove"]
    assert (status, row["what"], row["name"]) == (0, "state", "gone")
    assert json.loads(out)["bytes"] == row["bytes"] >= 100_000
    assert gone.exists()

    status, out, _ = run("gc", "--state")
    assert (status, out.splitlines()[-1].split()[-1]) == (0, "freed")
    assert not gone.parent.exists()
    assert kept.exists()


def test_each_run_measures_and_list_shows_it(places, run):
    write_servers(places, SMALL)
    left(places, SMALL["name"])
    assert "DISK" not in run("list")[1]

    run("gc")

    assert disk.read(places.disk).servers[SMALL["name"]]["state"] >= 100_000
    head, row, *_ = (line.split() for line in run("list", "--wide")[1].splitlines())
    shown = dict(zip(head, row, strict=False))
    assert shown["DISK"].endswith("K")
    assert shown["MEMORY"] == "-"


def test_what_was_found_a_moment_ago_is_not_unused_for_long(places, run):
    write_servers(places, SMALL)
    gone = left(places, "gone")

    run("gc", "--state", "--unused-for=1h")
    assert gone.exists()

    run("gc", "--state", "--unused-for=0s")
    assert not gone.exists()


@pytest.mark.parametrize("text", ["{", None])
def test_while_nobody_knows_which_servers_there_are_nothing_is_removed(places, run, text):
    write_servers(places, SMALL)
    if text is None:
        places.servers_json.unlink()
    else:
        write_text(places.servers_json, text)
    gone = left(places, "gone")

    status, _, err = run("gc", "--state")

    assert status == 65
    assert "nobody knows" in err
    assert gone.exists()


def test_a_measurement_of_another_version_is_none(places):
    places.state_dir.mkdir(parents=True)
    for text in ("", "[]", '{"format": 2}', '{"format": 1, "servers": 3}'):
        places.disk.write_text(text, encoding="utf-8")
        assert disk.read(places.disk) == disk.Disk()
