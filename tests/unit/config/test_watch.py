import os

import pytest

from autobot_mcp_bridge.config import watch
from autobot_mcp_bridge.config.load import load
from autobot_mcp_bridge.config.tokens import TokenStore
from autobot_mcp_bridge.config.watch import fingerprint, stable_read
from support.configured import SMALL, places_in, write_servers, write_text


@pytest.fixture
def places(tmp_path):
    return places_in(tmp_path)


def same_size_and_old_time(places):
    before = places.servers_json.stat()
    text = places.servers_json.read_text(encoding="utf-8").replace("time", "tame")
    write_text(places.servers_json, text)
    os.utime(places.servers_json, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        lambda places: write_text(places.host_toml, ""),
        lambda places: write_text(places.servers_d / "a.json", "{}"),
        lambda places: (places.servers_d / "there.json").unlink(),
        lambda places: places.servers_json.unlink(),
        lambda places: places.servers_json.chmod(0o600),
        lambda places: TokenStore(places.tokens_d).new("time"),
        same_size_and_old_time,
    ],
)
def test_every_change_of_a_file_changes_the_fingerprint(places, change):
    write_servers(places, SMALL)
    write_text(places.servers_d / "there.json", "{}")
    before = fingerprint(places)

    assert fingerprint(places) == before
    change(places)

    assert fingerprint(places) != before


def test_a_file_that_does_not_count_does_not_change_the_fingerprint(places):
    before = fingerprint(places)

    write_text(places.servers_d / ".a.json.swp", "{}")

    assert fingerprint(places) == before


def test_a_configuration_that_changes_while_it_is_read_is_read_again(places, monkeypatch):
    write_servers(places, SMALL)
    reads = []

    def disturbed(found, *, units):
        loaded = load(found, units=units)
        if not reads:
            write_servers(places, {**SMALL, "name": "changed"})
        reads.append(loaded)
        return loaded

    monkeypatch.setattr(watch, "load", disturbed)

    loaded, mark = stable_read(places, units=False)

    assert [spec.name for spec in loaded.servers] == ["changed"]
    assert mark == fingerprint(places)
    assert len(reads) == 2


def test_a_configuration_that_never_holds_still_is_left_to_the_next_poll(places, monkeypatch):
    reads = []

    def disturbed(found, *, units):
        reads.append(load(found, units=units))
        write_servers(places, {**SMALL, "name": f"n{len(reads)}"})
        return reads[-1]

    monkeypatch.setattr(watch, "load", disturbed)

    loaded, mark = stable_read(places, units=False)

    assert len(reads) == watch.MAX_READS
    assert loaded is reads[-1]
    assert mark != fingerprint(places)
