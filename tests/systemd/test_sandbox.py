"""What becomes of a definition in the sandbox: limits, paths, groups, state.

What a server cannot do is tried in tests/sandbox.
"""

import pytest

from support.containers import properties
from support.installed import instance, instances, spec_of

pytestmark = pytest.mark.lab

EATER = "b = bytearray(200 << 20); b[::4096] = b'x' * len(b[::4096]); print(len(b), flush=True)"


def output(one):
    with one.start() as handed:
        assert handed.rest() == b""
        return handed.read(within=20).decode()


def plain(container, *words):
    """What the words print in a unit without a sandbox."""
    return container.check("systemd-run", "--quiet", "--pipe", "--wait", "--", *words)


def test_node_runs_in_the_sandbox(installed):
    program = "console.log(eval('6 * 7'))"
    with instance(installed, spec_of("js", "/usr/bin/node", "-e", program)) as one:
        assert output(one) == "42\n"


def test_node_knows_its_interfaces_where_it_has_a_network(installed):
    program = "console.log(Object.keys(require('os').networkInterfaces()).join())"
    words, network = ("/usr/bin/node", "-e", program), {"mode": "loopback"}
    specs = [spec_of("online", *words, network=network), spec_of("offline", *words)]
    with instances(installed, specs) as (online, offline):
        assert output(online) == "lo\n"
        assert output(offline) == ""


def test_memory_above_the_limit_is_not_to_be_had(installed):
    program = ("/usr/bin/python3", "-I", "-S", "-c", EATER)
    limits = {"memory": "64M"}
    enough = {"memory": "512M"}
    specs = [spec_of("less", *program, limits=limits), spec_of("more", *program, limits=enough)]
    with instances(installed, specs) as (less, more):
        assert output(less) == ""
        assert output(more) == f"{200 << 20}\n"
    assert plain(installed, *program) == f"{200 << 20}\n"


def test_open_files_and_tasks_are_limited(installed):
    script = "ulimit -n; ulimit -Hn; ulimit -c"
    limits = {"open_files": 77, "tasks": 9}
    with instance(installed, spec_of("counted", "/bin/sh", "-c", script, limits=limits)) as one:
        assert output(one) == "77\n77\n0\n"
        assert properties(installed, one.service, "TasksMax") == {"TasksMax": "9"}


@pytest.fixture
def trees(installed):
    """Directories to share: one readable, one writable, in /srv and below a home."""
    script = """
    for root in /srv/shared /home/alice; do
        mkdir -p $root/read $root/write $root/neither
        for each in read write neither; do echo $root/$each > $root/$each/file; done
        chmod 755 $root $root/*; chmod 777 $root/write
    done
    groupadd --force lab-acme; echo secret > /srv/shared/grouped
    chgrp lab-acme /srv/shared/grouped; chmod 640 /srv/shared/grouped
    """
    installed.check("sh", "-ec", script)


@pytest.mark.parametrize("root", ["/srv/shared", "/home/alice"])
def test_shared_paths_can_be_read_or_written_and_nothing_is_executed_there(installed, trees, root):
    script = """
    cat $0/read/file; echo x 2>/dev/null > $0/read/new && echo written
    cat $0/write/file; echo x > $0/write/new && echo written
    cp /bin/true $0/write/true && $0/write/true 2>/dev/null && echo executed
    test -e /home/alice/neither/file && echo seen
    exit 0
    """
    words = ("/bin/sh", "-c", "; ".join(line.strip() for line in script.strip().splitlines()), root)
    paths = {"read": [f"{root}/read"], "write": [f"{root}/write"]}
    with instance(installed, spec_of("sharing", *words, paths=paths)) as one:
        confined = output(one)

    assert confined == f"{root}/read\n{root}/write\nwritten\n"
    assert installed.run("test", "-e", f"{root}/write/new").status == 0
    free = plain(installed, *words)
    assert free == f"{root}/read\nwritten\n{root}/write\nwritten\nexecuted\nseen\n"
    installed.check("rm", "-f", f"{root}/read/new", f"{root}/write/new", f"{root}/write/true")


def test_a_group_opens_its_files(installed, trees):
    words = ("/bin/cat", "/srv/shared/grouped")
    with instance(installed, spec_of("member", *words, groups=["lab-acme"])) as one:
        assert output(one) == "secret\n"
    with instance(installed, spec_of("stranger", *words)) as one:
        assert output(one) == ""


def test_state_is_kept_and_belongs_to_the_instance_alone(installed):
    script = 'cat kept 2>/dev/null; echo was here > "$HOME/kept"; stat -c %a "$HOME/"'
    for expected in ("700\n", "was here\n700\n"):
        with instance(installed, spec_of("keeps", "/bin/sh", "-c", script)) as one:
            assert output(one) == expected
    installed.check("rm", "-r", "/var/lib/private/mcp-bridge/default/-/keeps")


FACES = [
    spec_of("verified"),
    spec_of("verified", profile="node", paths={"read": ["/home/alice"], "write": ["/srv"]}),
    spec_of("verified", env={"A": "%h $X \\ \" '"}, credentials={"TOKEN": "attempt"}),
]


@pytest.mark.parametrize("spec", FACES, ids=["plain", "node and paths", "values"])
def test_verify_has_nothing_to_say_and_the_exposure_is_at_most_a_half(installed, spec):
    with instance(installed, spec) as one:
        verified = installed.run("systemd-analyze", "verify", "--man=no", one.service, one.socket)
        shown = installed.check("systemd-analyze", "security", "--no-pager", one.service)

    assert (verified.status, verified.out, verified.err) == (0, "", "")
    exposure = float(shown.rsplit("Overall exposure level", 1)[1].split(":")[1].split()[0])
    assert exposure <= 0.5


@pytest.mark.parametrize("name", ["npx", "uvx"])
def test_the_exposure_of_a_live_profile_is_at_most_one_and_a_fifth(installed, name):
    with instance(installed, spec_of("weaker", f"/usr/bin/{name}", "x", profile=name)) as one:
        verified = installed.run("systemd-analyze", "verify", "--man=no", one.service, one.socket)
        shown = installed.check("systemd-analyze", "security", "--no-pager", one.service)

    assert [line for line in verified.err.splitlines() if "is not executable" not in line] == []
    exposure = float(shown.rsplit("Overall exposure level", 1)[1].split(":")[1].split()[0])
    assert 0.5 < exposure <= 1.2


def test_a_misspelt_key_would_be_told(installed):
    with instance(installed, spec_of("misspelt"), extra="[Service]\nProtectHomes=yes\n") as one:
        said = installed.run("systemd-analyze", "verify", "--man=no", one.service)

    assert "ProtectHomes" in said.err
