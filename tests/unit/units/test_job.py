"""One install's programs: their log, their deadline, their end."""

import os
import threading
import time
from pathlib import Path

import pytest

from autobot_mcp_bridge.units.packages.job import (
    CancelledInstallError,
    InstallError,
    Job,
    without_log,
)
from support.waiting import eventually


@pytest.fixture
def job(tmp_path):
    return Job(tmp_path / "log", {"PATH": os.defpath})


def shell(job, text):
    return job.run(["/bin/sh", "-c", text], env=job.environ, cwd=job.log.parent)


def test_what_a_program_writes_to_stdout_is_returned(job):
    assert shell(job, "echo one; echo noise >&2") == "one\n"
    assert "noise" in job.log.read_text()


def test_a_failure_tells_status_last_lines_and_log(job):
    with pytest.raises(InstallError, match=r"status 3: .*no such package.*log: .*log"):
        shell(job, "echo 'no such package' >&2; exit 3")


def test_a_message_can_do_without_a_log_that_is_gone_and_keeps_the_rest(job):
    with pytest.raises(InstallError) as failed:
        shell(job, "echo 'no such package' >&2; exit 3")
    said = without_log(f"{failed.value}\nrun: this")

    assert said == "sh exited with status 3: no such package\nrun: this"


def test_a_program_that_is_not_there_fails_with_its_name(job, tmp_path):
    with pytest.raises(InstallError, match="nowhere"):
        job.run([tmp_path / "nowhere"], env={}, cwd=tmp_path)


def test_files_are_readable_for_others_whatever_the_callers_umask(job, tmp_path):
    before = os.umask(0o077)
    try:
        shell(job, "mkdir made; echo x > made/file")
    finally:
        os.umask(before)

    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "made/file").stat().st_mode & 0o777 == 0o644


async def test_a_cancel_ends_the_program_and_what_it_started(job, tmp_path):
    pids = tmp_path / "pids"
    failed = []

    def work():
        try:
            shell(job, f"sleep 600 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait")
        except InstallError as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    await eventually(pids.exists)
    job.cancelled.set()
    await eventually(lambda: not thread.is_alive())

    assert [type(error) for error in failed] == [CancelledInstallError]
    for pid in pids.read_text().split():
        await eventually(lambda pid=pid: gone(int(pid)))


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_the_deadline_ends_a_program_that_does_not(job):
    job.deadline = time.monotonic()

    with pytest.raises(InstallError, match="not done after"):
        shell(job, "sleep 600")
