"""The files of accepted tools, kept in step with what the servers list."""

import json
import logging

import pytest

from autobot_mcp_bridge.config.baselines import BaselineFiles
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.policy.drift.descriptor import tools_of
from autobot_mcp_bridge.proxy.baselines import Baselines


def spec(name, drift="hold"):
    return ServerSpec(name=name, command=("x",), tools={"drift": drift})


def tools(*names, text="reads"):
    return tools_of({"tools": [{"name": name, "description": text} for name in names]})


def sees(drift, *names, text="reads"):
    drift.see(tools(*names, text=text), first=True, whole=True)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "tools.d"


async def loaded(folder, *specs):
    baselines = Baselines(folder)
    await baselines.load(specs)
    return baselines


async def test_what_one_proxy_has_seen_the_next_one_knows(folder):
    first = await loaded(folder, spec("files"))
    sees(first.of("files"), "read")
    await first.save()

    second = await loaded(folder, spec("files"))

    assert second.of("files").baseline == first.of("files").baseline
    sees(second.of("files"), "read", "send")
    assert second.of("files").counts()["new"] == 1


async def test_a_file_is_written_when_something_has_changed_and_not_else(folder):
    baselines = await loaded(folder, spec("files"), spec("other"))
    await baselines.save()
    assert not folder.exists()
    sees(baselines.of("files"), "read")
    await baselines.save()
    written = (folder / "files.json").stat().st_mtime_ns
    sees(baselines.of("files"), "read")
    await baselines.save()

    assert [path.name for path in folder.iterdir()] == ["files.json"]
    assert (folder / "files.json").stat().st_mtime_ns == written


async def test_a_server_that_is_not_watched_is_not_read(folder):
    BaselineFiles(folder).path("files").parent.mkdir()
    (folder / "files.json").write_text("{", encoding="utf-8")

    baselines = await loaded(folder, spec("files", "off"))
    assert baselines.problems == ()

    await baselines.load([spec("files", "warn")])
    assert len(baselines.problems) == 1


async def test_of_a_broken_file_nothing_counts_also_for_the_proxy_after_the_next(folder):
    folder.mkdir(mode=0o700)
    (folder / "files.json").write_text("[", encoding="utf-8")

    baselines = await loaded(folder, spec("files"))
    (problem,) = baselines.problems
    assert problem.file == str(folder / "files.json")
    await baselines.save()
    later = await loaded(folder, spec("files"))
    sees(later.of("files"), "read")

    assert later.of("files").counts() == {"accepted": 0, "new": 1, "changed": 0, "gone": 0}
    await later.accept(later.of("files"), (), None)
    assert later.of("files").counts()["accepted"] == 1


async def test_accepting_mends_a_broken_file(folder):
    folder.mkdir(mode=0o700)
    (folder / "files.json").write_text("[", encoding="utf-8")
    baselines = await loaded(folder, spec("files"))
    sees(baselines.of("files"), "read")

    assert await baselines.accept(baselines.of("files"), (), None) == ["read"]

    assert baselines.problems == ()
    assert "read" in json.loads((folder / "files.json").read_text())["accepted"]


async def test_what_cannot_be_written_is_not_accepted_and_told_once(folder, caplog):
    baselines = await loaded(folder, spec("files"))
    drift = baselines.of("files")
    sees(drift, "read")
    sees(drift, "read", "send")
    folder.write_text("in the way", encoding="utf-8")

    with pytest.raises(OSError, match="exists"):
        await baselines.accept(drift, (), None)
    with caplog.at_level(logging.WARNING):
        await baselines.save()
        await baselines.save()

    assert drift.counts()["new"] == 1
    assert len([each for each in caplog.records if "cannot be written" in each.message]) == 1
    folder.unlink()
    await baselines.save()
    assert "send" in json.loads((folder / "files.json").read_text())["differing"]


async def test_more_tools_than_there_may_be_are_refused_whole(folder, monkeypatch):
    monkeypatch.setattr("autobot_mcp_bridge.policy.drift.baseline.MOST_TOOLS", 2)
    baselines = await loaded(folder, spec("files"))
    drift = baselines.of("files")
    sees(drift, "a", "b", "c")

    with pytest.raises(UsageError, match="at most 2 tools"):
        await baselines.accept(drift, ("c",), None)

    assert drift.counts()["new"] == 1


async def test_a_server_that_is_gone_is_written_down_no_more(folder):
    baselines = await loaded(folder, spec("files"), spec("other"))
    sees(baselines.of("files"), "read")

    await baselines.load([spec("other")])
    await baselines.save()

    assert not folder.exists()
