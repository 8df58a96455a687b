"""Lines come into the file in order, bounded, and without holding up the loop."""

import asyncio
import errno
import json
import threading

import pytest

from autobot_mcp_bridge.config.errors import UnavailableError
from autobot_mcp_bridge.policy.audit import writer as module
from autobot_mcp_bridge.policy.audit.files import AuditFile, files
from autobot_mcp_bridge.policy.audit.verify import noted_head, verify
from autobot_mcp_bridge.policy.audit.writer import Writer
from support.waiting import eventually


class Tells:
    """What a chain says of itself, and what it has told."""

    def __init__(self):
        self.lines, self.seq = 0, 0

    def greeting(self, file):
        return {"event": "audit_started"}

    def gap(self, missing):
        return {"event": "audit_gap", "missing": missing}

    def written(self, lines, seq):
        self.lines, self.seq = self.lines + lines, seq


class Disk(AuditFile):
    """A file whose writes wait for `gate`, and fail with `fault`."""

    def __init__(self, directory, max_bytes=1 << 20, backups=3):
        super().__init__(directory, max_bytes, backups)
        self.gate = threading.Event()
        self.gate.set()
        self.fault = None
        self.batches = []

    def write(self, lines):
        assert self.gate.wait(30)
        self.batches.append(len(lines))
        return super().write(lines)

    def _write_some(self, lines, begin):
        if self.fault is not None:
            raise self.fault
        return super()._write_some(lines, begin)


@pytest.fixture
async def disk(tmp_path):
    return Disk(tmp_path / "audit.d")


@pytest.fixture
def tells():
    return Tells()


@pytest.fixture
async def writer(disk, tells):
    made = await Writer(disk, tells).start(required=False)
    yield made
    disk.gate.set()
    await made.close()


def kept(disk):
    return [
        json.loads(line)
        for path in files(disk._directory)
        for line in path.read_bytes().splitlines()
    ]


def numbers(disk):
    return [line["n"] for line in kept(disk) if "n" in line]


async def test_lines_are_written_in_the_order_in_which_they_came(writer, disk, tells):
    for number in range(1000):
        writer.append({"n": number})
        if number % 100 == 0:
            await asyncio.to_thread(lambda: None)
    await eventually(lambda: tells.lines == 1001)

    assert numbers(disk) == [*range(1000)]
    assert tells.seq == 1001
    assert noted_head(disk._directory) == (1001, disk.chain.digest)
    assert verify(files(disk._directory)).clean


async def test_what_comes_while_the_disk_is_busy_waits_together(writer, disk, tells):
    await eventually(lambda: tells.lines == 1)
    disk.gate.clear()
    writer.append({"n": 0})
    await eventually(lambda: writer._writing)
    for number in range(1, 500):
        writer.append({"n": number})
    # The loop is free all the while: nothing here waits for the disk.
    assert numbers(disk) == []

    disk.gate.set()
    await eventually(lambda: tells.lines == 501)
    assert numbers(disk) == [*range(500)]
    assert disk.batches[-1] == 499


async def test_what_finds_no_room_is_lost_counted_and_said_in_the_chain(
    writer, disk, tells, monkeypatch
):
    monkeypatch.setattr(module, "MAX_WAITING", 5000)
    disk.gate.clear()
    for number in range(100):
        writer.append({"n": number})
    assert writer.lost > 50
    assert not writer.can_write

    disk.gate.set()
    await eventually(lambda: writer.can_write and tells.lines == 102 - writer.lost)
    lines = kept(disk)
    assert lines[-1] == {**lines[-1], "event": "audit_gap", "missing": writer.lost}
    assert numbers(disk) == [*range(100 - writer.lost)]
    assert verify(files(disk._directory)).clean


async def test_a_fault_of_the_disk_costs_no_line(writer, disk, tells, monkeypatch, caplog):
    monkeypatch.setattr(module, "RETRY", 0.02)
    await eventually(lambda: tells.lines == 1)
    disk.fault = OSError(errno.EIO, "Input/output error")
    for number in range(10):
        writer.append({"n": number})
    await eventually(lambda: len(disk.batches) > 4)
    assert writer.failing == "Input/output error"
    assert not writer.can_write
    assert numbers(disk) == []

    disk.fault = None
    await eventually(lambda: tells.lines == 11)
    assert writer.can_write
    assert numbers(disk) == [*range(10)]
    said = [record.getMessage() for record in caplog.records]
    assert [text.split(":")[0] for text in said] == [
        "calls cannot be recorded",
        "calls are recorded again",
    ]


async def test_what_comes_before_the_file_can_be_opened_is_written_then(
    tmp_path, tells, monkeypatch
):
    monkeypatch.setattr(module, "RETRY", 0.02)
    monkeypatch.setattr(module, "MAX_EARLY", 5)
    (tmp_path / "audit.d").write_text("in the way")
    disk = Disk(tmp_path / "audit.d")
    writer = await Writer(disk, tells).start(required=False)
    for number in range(8):
        writer.append({"n": number})
    assert writer.lost == 3

    (tmp_path / "audit.d").unlink()
    await eventually(lambda: tells.lines == 7)
    assert [line.get("event") or line["n"] for line in kept(disk)] == [
        *("audit_started", 0, 1, 2, 3, 4, "audit_gap")
    ]
    await writer.close()


async def test_where_each_call_must_be_recorded_a_file_that_cannot_be_made_is_refused(
    tmp_path, tells
):
    (tmp_path / "audit.d").write_text("in the way")

    with pytest.raises(UnavailableError, match=r"audit\.d.*audit\.required is true"):
        await Writer(Disk(tmp_path / "audit.d"), tells).start(required=True)


async def test_two_do_not_write_one_chain(writer, disk, tells):
    with pytest.raises(UnavailableError, match="another process writes"):
        await Writer(Disk(disk._directory), tells).start(required=False)


async def test_the_end_waits_for_what_was_recorded(disk, tells):
    writer = await Writer(disk, tells).start(required=False)
    for number in range(100):
        writer.append({"n": number})
    await writer.close()

    assert numbers(disk) == [*range(100)]


async def test_an_end_does_not_wait_for_a_disk_that_hangs(disk, tells, monkeypatch, caplog):
    monkeypatch.setattr(module, "CLOSE_WITHIN", 0.05)
    writer = await Writer(disk, tells).start(required=False)
    await eventually(lambda: tells.lines == 1)
    disk.gate.clear()
    writer.append({"n": 0})
    await eventually(lambda: writer._writing)
    await writer.close()
    disk.gate.set()

    assert "1 calls have no record: they could not be written in time" in caplog.text


async def test_what_is_no_json_is_told_and_moves_nothing(writer, disk, tells):
    with pytest.raises(TypeError):
        writer.append({"n": object()})
    writer.append({"n": 1})
    await eventually(lambda: tells.lines == 2)

    assert verify(files(disk._directory)).clean
