"""The file of the records: what is done to it is seen, and it goes on after any end (SM-84)."""

import asyncio
import os
import shutil
import stat
import subprocess
from contextlib import asynccontextmanager

import pytest

from autobot_mcp_bridge.policy.audit.files import files
from support.audited import audit, calls, directory, everything, recorded, verified
from support.bridge import Bridge
from support.client import answer_to, code_of, text_of
from support.fakes import echo
from support.waiting import eventually

SMALL = {"audit": {"max_bytes": "64K", "backups": 3}}


@asynccontextmanager
async def bridge_with(number, **audit_settings):
    """A proxy that has recorded so many calls."""
    async with Bridge([echo("files")], host={"audit": audit_settings}) as bridge:
        await call(bridge, number)
        await recorded(bridge, number)
        yield bridge


async def call(bridge, number, **arguments):
    async with bridge.modern("files") as client:
        for each in range(number):
            assert text_of(await client.call("echo", {"text": str(each), **arguments})) == str(each)


def change(path, old, new, line):
    found = path.read_bytes().splitlines(keepends=True)
    assert old in found[line - 1]
    found[line - 1] = found[line - 1].replace(old, new, 1)
    path.write_bytes(b"".join(found))


def without(path, *numbers):
    found = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(f for n, f in enumerate(found, 1) if n not in numbers))


def places(verdict):
    return [(fault["line"], fault["what"]) for fault in verdict["faults"]]


# ---- what somebody does to it ----


async def test_a_byte_that_is_flipped_is_named_by_its_line(record_property):
    named = tried = 0
    async with bridge_with(20) as bridge:
        path = directory(bridge) / "audit.jsonl"
        whole = path.read_bytes()
        lines = whole.splitlines(keepends=True)
        assert verified(bridge)["clean"]
        at = 0
        for number, line in enumerate(lines, 1):
            # Somewhere within the line: of the words, of its number, of a digest.
            for offset in {len(line) // 3, line.index(b'"seq"') + 6, len(line) - 10, 5}:
                place = at + offset
                path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
                if number in (1, 7, len(lines)):
                    tried += 1
                    named += [line for line, _ in places(verified(bridge))] == [number]
            at += len(line)
        path.write_bytes(whole)
        record_property("audit_flipped_bytes_named", f"{named}/{tried}")
        assert named == tried == 12


async def test_a_field_that_is_changed_is_named_by_its_line():
    async with bridge_with(10) as bridge:
        path = directory(bridge) / "audit.jsonl"
        change(path, b'"status":"ok"', b'"status":"no"', 5)
        done = audit(bridge, "verify")
        assert done.returncode == 65
        assert done.stdout == "audit.jsonl:5: the line has been changed\n"


async def test_a_line_that_is_removed_is_missed_between_its_neighbours():
    async with bridge_with(10) as bridge:
        path = directory(bridge) / "audit.jsonl"
        without(path, 4, 5)
        ((line, what),) = places(verified(bridge))
        assert line == 4
        assert what == "2 lines between audit.jsonl:3 and this one are gone"


async def test_lines_that_are_cut_off_the_end_are_missed():
    async with bridge_with(10) as bridge:
        path = directory(bridge) / "audit.jsonl"
        without(path, 10, 11)
        assert places(verified(bridge)) == [(9, "2 lines behind this one are gone")]


async def test_a_tail_that_is_cut_within_a_line_is_named():
    async with bridge_with(10) as bridge:
        path = directory(bridge) / "audit.jsonl"
        path.write_bytes(path.read_bytes()[:-20])
        assert places(verified(bridge))[0] == (11, "the line is cut off")


async def test_lines_that_change_places_are_named():
    async with bridge_with(10) as bridge:
        path = directory(bridge) / "audit.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        lines[3], lines[4] = lines[4], lines[3]
        path.write_bytes(b"".join(lines))
        assert {line for line, _ in places(verified(bridge))} == {4, 5, 6}


async def test_a_chain_made_anew_is_told_by_a_digest_noted_elsewhere():
    async with bridge_with(10) as bridge:
        last = verified(bridge)["last"]
        noted = f"{last['seq']}:{last['hash']}"
        assert audit(bridge, "verify", "--expect", noted).returncode == 0
        await bridge.stop()
        shutil.rmtree(directory(bridge))
        await bridge.start()
        await call(bridge, 20)
        await recorded(bridge, 20)
        assert verified(bridge)["clean"]
        done = audit(bridge, "verify", "--expect", noted)
        assert "another than the one that was noted" in done.stdout
        assert done.returncode == 65


# ---- what it goes through ----


@pytest.mark.requirement("SM-84")
async def test_only_its_owner_reads_it_and_it_is_turned_over_by_size():
    host = {"audit": {"max_bytes": "64K", "backups": 3}}
    async with Bridge([echo("files")], host=host) as bridge:
        await call(bridge, 500)
        found = files(directory(bridge))
        names = ["audit.jsonl.3", "audit.jsonl.2", "audit.jsonl.1", "audit.jsonl"]
        assert [path.name for path in found] == names
        assert stat.S_IMODE(directory(bridge).stat().st_mode) == 0o700
        for path in directory(bridge).iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert all(60_000 < path.stat().st_size <= 65536 for path in found[:-1])

        verdict = await eventually(
            lambda: v if (v := verified(bridge))["last"]["seq"] == 501 else 0
        )
        assert verdict["clean"], verdict["faults"]
        assert verdict["first"] == 501 - verdict["lines"] + 1 > 1  # older files are not kept


@pytest.mark.requirement("SM-84")
async def test_files_that_others_could_read_are_closed_to_them():
    async with bridge_with(1) as bridge:
        await bridge.stop()
        path = directory(bridge) / "audit.jsonl"
        path.chmod(0o644)
        directory(bridge).chmod(0o755)
        await bridge.start()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(directory(bridge).stat().st_mode) == 0o700


async def test_a_removed_line_in_an_older_file_is_named_by_that_file():
    async with Bridge([echo("files")], host=SMALL) as bridge:
        await call(bridge, 300)
        await eventually(lambda: verified(bridge)["last"]["seq"] == 301)
        without(directory(bridge) / "audit.jsonl.1", 7)
        (fault,) = verified(bridge)["faults"]
        assert (fault["file"], fault["line"]) == ("audit.jsonl.1", 7)


async def test_a_restart_goes_on_with_the_chain():
    async with bridge_with(3) as bridge:
        for number in (6, 9):
            await bridge.stop()
            await bridge.start()
            await call(bridge, 3)
            await recorded(bridge, number)
        assert [line["event"] for line in everything(bridge)].count("audit_started") == 3
        assert [line["seq"] for line in everything(bridge)] == [*range(1, 13)]
        assert verified(bridge)["clean"]


async def test_a_line_that_was_never_written_whole_is_kept_aside_and_said():
    """A power cut leaves the beginning of a line."""
    async with bridge_with(3) as bridge:
        await bridge.stop()
        path = directory(bridge) / "audit.jsonl"
        with path.open("ab") as file:
            file.write(b'{"timestamp":"2026-11-30T22:3')
        await bridge.start()
        started = await eventually(lambda: [e for e in everything(bridge) if "torn" in e])
        assert started[0]["torn_bytes"] == 29
        kept = directory(bridge) / started[0]["torn"]
        assert kept.read_bytes() == b'{"timestamp":"2026-11-30T22:3'
        assert "cut off" in bridge.log()
        verdict = verified(bridge)
        assert (verdict["clean"], verdict["torn"]) == (True, [kept.name])


async def test_without_a_file_nothing_is_written():
    async with Bridge([echo("files")], host={"audit": {"file": False}}) as bridge:
        await call(bridge, 3)
        assert not directory(bridge).exists()
        done = audit(bridge, "verify")
        assert done.returncode == 66
        assert "no calls are recorded" in done.stderr


async def test_without_arguments_none_are_kept():
    async with bridge_with(1, args=False) as bridge:
        assert [line["args"] for line in calls(bridge)] == [None]


# ---- a disk that is full ----


class Small(Bridge):
    """A proxy whose records have a file system of their own, of 256 KiB."""

    def _make_root(self):
        super()._make_root()
        self.disk = self.state_dir / "audit.d"
        self.disk.mkdir(parents=True)
        words = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(self.disk)]
        subprocess.run(words, check=True)
        self.filler = self.disk / "filler"

    def fill(self):
        """Leave no byte free."""
        with self.filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    async def __aexit__(self, *exc):
        try:
            await self.stop()
        finally:
            words = ["umount", "-l", str(self.disk)]
            await asyncio.to_thread(subprocess.run, words, check=True)
        await super().__aexit__(*exc)


async def failing(bridge):
    """Whether the proxy says that it cannot write."""
    return await bridge.metric("mcp_bridge_audit_ok") == 0


@pytest.mark.root
async def test_a_full_disk_costs_no_call_and_no_line():
    async with Small([echo("files")]) as bridge:
        await call(bridge, 5)
        await recorded(bridge, 5)
        bridge.fill()
        await call(bridge, 30, pad=["word " * 80] * 10)
        await eventually(lambda: failing(bridge))
        await call(bridge, 10)
        assert "cannot be recorded: No space left on device" in bridge.log()
        assert len(calls(bridge)) < 45
        assert verified(bridge)["clean"]  # no part of a line stands there

        bridge.filler.unlink()
        await recorded(bridge, 45)
        assert "recorded again" in bridge.log()
        assert verified(bridge)["clean"]
        assert await bridge.metric("mcp_bridge_audit_lost_total") == 0


@pytest.mark.root
async def test_with_required_nothing_is_called_that_cannot_be_recorded():
    async with Small([echo("files")], host={"audit": {"required": True}}) as bridge:
        await call(bridge, 5)
        await recorded(bridge, 5)
        bridge.fill()
        async with bridge.modern("files") as client, bridge.session("files") as session:
            while "result" in await client.call("echo", {"pad": ["word " * 80] * 10}):
                pass  # until the first that is refused
            assert await failing(bridge)
            for each in (client, session):
                response = await each.send(each.call_of("counter", {}, 1))
                assert response.status == 503 and response.header("Retry-After") == "1"
                assert code_of(answer_to(response, 1)) == "audit_unavailable"
                assert await each.tools()  # what leaves no line is served

            bridge.filler.unlink()
            await eventually(lambda: bridge.metric("mcp_bridge_audit_ok"))
            assert await client.text("counter") == "1"  # the refused calls never reached it
        refused = calls(bridge, error="audit_unavailable")
        assert [line["status"] for line in refused] == ["blocked"] * 3
        assert verified(bridge)["clean"]


async def test_a_directory_that_cannot_be_made_is_said_and_tried_again():
    async with bridge_with(1) as bridge:
        await bridge.stop()
        shutil.rmtree(directory(bridge))
        directory(bridge).write_text("in the way")
        await bridge.start()
        await call(bridge, 3)
        await eventually(lambda: failing(bridge))
        directory(bridge).unlink()
        await recorded(bridge, 3)
        assert verified(bridge)["clean"]
        assert os.access(directory(bridge) / "audit.jsonl", os.R_OK)
