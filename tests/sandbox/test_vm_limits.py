"""Limits on cgroup v2, in a virtual machine: each met by a server, beside one that has it lifted."""

import json

import pytest

from autobot_mcp_bridge.model.death import DeathCause
from support.containers import properties
from support.installed import spec_of
from support.vms import inside
from support.waiting import until

pytestmark = pytest.mark.vm

# Takes MiB of memory and uses seconds of a processor; then it tells what its cgroup's files say.
USES = """
import json, os, sys, time
mib, seconds, *names = sys.argv[1:]
group = "/sys/fs/cgroup" + open("/proc/self/cgroup").read().strip().removeprefix("0::")
held = bytearray(int(mib) << 20)
held[::4096] = b"x" * len(held[::4096])
while time.process_time() < float(seconds):
    pass
print(json.dumps({name: open(f"{group}/{name}").read().strip() for name in names}))
"""
# The same in a grandchild, for which the server waits and goes on.
HELPED = """
import os, subprocess, sys
ended = subprocess.run([sys.executable, "-IS", *sys.argv[1:]]).returncode
print("went on after", ended, flush=True)
"""
FORKS = """
import os
inside, outside = os.pipe()
number = 0
try:
    while number < 40:
        if os.fork() == 0:
            os.close(outside); os.read(inside, 1); os._exit(0)
        number += 1
except OSError as error:
    print("refused:", error.errno)
else:
    print("had")
"""
PYTHON = ("/usr/bin/python3", "-I", "-S")
EAGAIN = 11


@pytest.fixture(scope="module")
def programs(vm):
    for name, text in (("uses", USES), ("helped", HELPED), ("forks", FORKS)):
        vm.write(f"/opt/limits/{name}.py", text)
    return vm


def uses(mib, seconds, *files):
    return (*PYTHON, "/opt/limits/uses.py", str(mib), str(seconds), *files)


def figures(text):
    """The numbers of a file of pairs."""
    return {key: int(value) for key, value in (line.split() for line in text.splitlines())}


def told(vm, words, limits, extra=""):
    """What the cgroup's files say within a server; {} if it has come to nothing."""
    with inside(vm, spec_of("limited", *words, limits=limits), extra) as one:
        said = one.told()
    return json.loads(said) if said else {}


@pytest.mark.requirement("S12")
def test_a_server_that_takes_too_much_memory_is_ended_and_that_is_told(programs):
    words, limits = uses(200, 0, "memory.max"), {"memory": "64M"}
    with inside(programs, spec_of("eats", *words, limits=limits)) as one:
        found = one.taken()
        last = one.last_words(found["invocation"])
        how = properties(programs, one.service, "Result", "ActiveState")

    assert found["said"] == ""
    assert how == {"Result": "oom-kill", "ActiveState": "failed"}
    assert (last.how.result, last.how.oom_kill) == ("oom-kill", 1)
    assert last.death(str).cause is DeathCause.MEMORY
    assert told(programs, words, limits, "[Service]\nMemoryMax=infinity\n") == {"memory.max": "max"}


@pytest.mark.requirement("S12")
def test_the_end_of_a_helper_for_memory_ends_the_server_and_is_told(programs):
    words = (*PYTHON, "/opt/limits/helped.py", *uses(200, 0)[3:])
    spec = spec_of("helped", *words, limits={"memory": "64M"})
    with inside(programs, spec) as one:
        found = one.taken()
        last = one.last_words(found["invocation"])
        how = properties(programs, one.service, "Result")
    with inside(programs, spec, "[Service]\nOOMPolicy=continue\n") as one:
        alone = one.told()

    assert how == {"Result": "oom-kill"}
    assert last.how.oom_kill >= 1
    assert last.death(str).cause is DeathCause.MEMORY
    assert alone.splitlines()[-1] == "went on after -9"


def test_a_server_beyond_its_soft_limit_is_held_up_and_goes_on(programs):
    words, files = uses(60, 0, "memory.events", "memory.high"), {"memory": "256M"}
    held_up = told(programs, words, {**files, "memory_high": "64M"})
    free = told(programs, words, files)

    assert held_up["memory.high"] == str(64 << 20)
    assert figures(held_up["memory.events"])["high"] > 0
    assert figures(held_up["memory.events"])["oom_kill"] == 0
    assert (free["memory.high"], figures(free["memory.events"])["high"]) == ("max", 0)


def test_no_memory_of_a_server_goes_to_the_swap_that_the_host_has(programs, swap):
    words, limits = uses(100, 0, "memory.swap.current"), {"memory": "64M"}
    swapping = told(programs, words, limits, "[Service]\nMemorySwapMax=infinity\n")

    assert int(swapping["memory.swap.current"]) > 0
    assert told(programs, words, limits) == {}


def test_a_server_has_no_more_tasks_than_it_may(programs):
    spec = spec_of("forks", *PYTHON, "/opt/limits/forks.py", limits={"tasks": 20})
    with inside(programs, spec) as one:
        refused = one.told()
    with inside(programs, spec, "[Service]\nTasksMax=infinity\n") as one:
        had = one.told()

    assert (refused, had) == (f"refused: {EAGAIN}\n", "had\n")


def test_a_server_gets_no_more_of_a_processor_than_its_quota(programs):
    limits = {"cpu": "20%"}
    short = told(programs, uses(1, 1.5, "cpu.stat", "cpu.max"), limits)
    free = told(programs, uses(1, 1.5, "cpu.stat"), limits, "[Service]\nCPUQuota=\n")
    held_up, not_at_all = figures(short["cpu.stat"]), figures(free["cpu.stat"])

    assert short["cpu.max"] == "20000 100000"
    assert held_up["throttled_usec"] > 1_500_000
    assert not_at_all.get("throttled_usec", 0) == 0
    assert not_at_all["usage_usec"] >= 1_500_000


def test_the_weights_of_a_server_come_to_its_cgroup(programs):
    programs.check("modprobe", "bfq")
    words = uses(1, 0, "io.bfq.weight", "cpu.weight")
    own = told(programs, words, {"io_weight": 50, "cpu_weight": 40})
    plain = told(programs, words, {"io_weight": 100, "cpu_weight": 100})

    assert own == {"io.bfq.weight": "default 50", "cpu.weight": "40"}
    assert plain == {"io.bfq.weight": "default 100", "cpu.weight": "100"}


READ = """
import json, sys
from dataclasses import asdict
from autobot_mcp_bridge.supervision.cgroups import Cgroups
cgroups = Cgroups()
print(json.dumps({"unified": cgroups.unified, **asdict(cgroups.read(sys.argv[1]))}))
"""


@pytest.mark.requirement("AB-47")
def test_what_the_product_reads_of_a_cgroup_is_what_systemd_says(programs):
    limits = {"memory": "96M", "memory_high": "80M", "tasks": 40}
    names = ("MemoryCurrent", "TasksCurrent", "CPUUsageNSec", "MemoryMax", "MemoryHigh", "TasksMax")
    with inside(programs, spec_of("reads", limits=limits)) as one, one.held():
        group = properties(programs, one.service, "ControlGroup")["ControlGroup"]

        def both():
            python = "/usr/lib/mcp-bridge/venv/bin/python"
            read = json.loads(programs.check(python, "-I", "-c", READ, group))
            shown = properties(programs, one.service, *names)
            said = {name: int(shown[name]) for name in names}
            ours = ("memory", "tasks", "cpu", "memory_max", "memory_high", "tasks_max")
            values = [read[name] for name in ours]
            # Its seconds come from microseconds.
            values[2], said["CPUUsageNSec"] = round(values[2] * 1e6), said["CPUUsageNSec"] // 1000
            return read if values == [*said.values()] else None

        # Of a server that does nothing the kernel may still move a page to another account.
        read = until(both, within=30.0)

    assert read is not None
    assert (read["unified"], read["errors"]) == (True, 0)
    assert read["memory_events"] == {"high": 0, "max": 0, "oom": 0, "oom_kill": 0}
    assert (read["tasks"], read["tasks_max"], read["memory_max"]) == (1, 40, 96 << 20)
