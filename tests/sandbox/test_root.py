"""A server in a root of its own: what it sees and can do there, beside a server in the host's root."""

import hashlib
import json

import pytest

from autobot_mcp_bridge.units.sandbox.image import EMPTY, MOUNTED
from lab import recipe
from lab.base import base
from lab.spec import Bind
from support.containers import entries, properties
from support.images import allow_images, sandbox_image, squashed
from support.installed import SERVERS
from support.product import installed_product
from support.waiting import eventually

pytestmark = pytest.mark.lab

HERE = "/srv/servers"  # where the program of the servers lies, on the host and, bound, in each root
ROOTS = {
    "directory": {"directory": "/srv/images/open"},
    "image": {"image": "/srv/images/tools.squashfs"},
}
KINDS = (*ROOTS,)
SECRET = "hunter2-of-the-root"
NETWORK = {"mode": "list", "allow": ["192.0.2.0/24"]}
EATER = "b = bytearray(200 << 20); b[::4096] = b'x' * len(b[::4096]); print(len(b))"
# A directory whose python3 tells who runs it, and with a place in which everybody may write.
OPEN = r"""
mkdir -p /run/upper /srv/images/open && mount -t tmpfs tmpfs /run/upper
mkdir /run/upper/files /run/upper/work
mount -t overlay overlay /srv/images/open \
    -o lowerdir=/srv/images/system,upperdir=/run/upper/files,workdir=/run/upper/work
cd /srv/images/open && mkdir -m 777 everybodys && python=$(readlink -f usr/bin/python3)
rm usr/bin/python3
printf '#!/bin/sh\necho "python3 of uid $(id -u)" >&2\nexec %s "$@"\n' "/usr/bin/$(basename $python)" \
    > usr/bin/python3 && chmod 755 usr/bin/python3
"""
# Every directory that is there but the kernel's own, with what comes of writing and executing.
WRITABLE = r"""
find / -xdev -type d 2>/dev/null; for each in / /dev /dev/shm /run /tmp /var/tmp /var/lib "$HOME" \
    "$XDG_CACHE_HOME"; do find "$each" -xdev -type d 2>/dev/null; done
"""


def definition(name, kind=None, **keys):
    return {
        "name": name,
        "command": ["/usr/bin/python3", f"{HERE}/shell.py"],
        "root": ROOTS.get(kind),
        "paths": {"read": [HERE]},
        **keys,
    }


@pytest.fixture(scope="module", params=recipe.SUITES)
def product(request, lab, need, tmp_path_factory):
    need("mksquashfs")
    suite = request.param
    folder = tmp_path_factory.mktemp("images")
    for place in (*MOUNTED, *EMPTY, "/usr/bin"):
        (folder / f"root{place}").mkdir(parents=True, exist_ok=True)
    binds = [
        Bind(str(base(lab.cache, suite)), "/srv/images/system"),
        Bind(str(sandbox_image(lab)), "/srv/images/tools.squashfs"),
        Bind(str(squashed(folder / "root", folder / "bare")), "/srv/images/bare.squashfs"),
    ]
    made = installed_product(lab, suite, f"root-{suite}", binds)
    inside = made.container
    allow_images(inside)
    inside.check("sh", "-ec", OPEN)
    inside.check("cp", "-r", SERVERS, HERE)
    inside.check(
        "sh", "-ec", "mkdir -p /srv/images/bare/usr/bin /srv/given /srv/secret /home/alice"
    )
    inside.check("chmod", "777", "/srv/given")
    for path in ("/etc/of-the-host", "/srv/secret/file", "/home/alice/file", "/srv/given/file"):
        inside.write(path, "of the host\n")
    inside.write("/etc/resolv.conf", "nameserver 192.0.2.53\n")
    inside.write("/etc/credstore/root", SECRET, mode=0o600)
    serve(made).checked()
    yield made
    inside.down()


def serve(product, *more):
    """The servers of these tests, and some more; what apply says."""
    shared = {"read": [HERE], "write": ["/srv/given"]}
    servers = [definition("free")]
    for kind in KINDS:
        servers += [
            definition(kind, kind, credentials={"TOKEN": "root"}, paths=shared),
            definition(f"{kind}-asks", kind, network=NETWORK),
            definition(f"{kind}-less", kind, limits={"memory": "64M"}),
            definition(f"{kind}-more", kind, limits={"memory": "512M"}),
        ]
    product.write_servers(*servers, *more)
    return product.container.run("mcp-bridge", "apply", timeout=60.0)


async def run(product, name, script, *, within=20.0):
    """What a script prints that the server's shell runs."""
    async with product.session(name) as client:
        said = await client.text("run", script=script, within=within)
    return json.loads(said)["out"]


def service(name):
    return f"autobot-mcp-bridge@{name}.service"


async def test_the_tools_of_the_image_do_their_work(product):
    script = """echo '{"a": [1, 2]}' | jq -c '.a' && rg --version | head -1 && git --version"""

    out = await run(product, "image", script)

    assert out.startswith("[1,2]\nripgrep ")
    assert "git version" in out
    assert await run(product, "free", "command -v jq rg git") == ""


@pytest.mark.parametrize("kind", KINDS)
async def test_the_host_s_files_are_not_seen(product, kind):
    places = "/etc/of-the-host /srv/secret/file /srv/images /usr/lib/mcp-bridge /var/lib/dpkg"
    script = f"for each in {places}; do test -e $each && echo $each; done; cat /etc/hostname"
    hidden = "/home/alice/file"

    free = await run(product, "free", script)
    confined = await run(product, kind, script)

    name = product.container.check("cat", "/etc/hostname")
    assert free == "\n".join([*places.split(), name])
    assert confined.replace(name, "") == confined
    assert not any(place in confined for place in places.split())
    assert await run(product, kind, f"cat {hidden} 2>&1 || true") != "of the host\n"
    assert product.container.check("cat", hidden) == "of the host\n"


@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_is_written_but_its_own_and_nothing_executed_there(product, kind):
    each = 'cp /bin/true "$d/x" 2>/dev/null && echo "$d" && "$d/x" 2>/dev/null && echo executed'
    script = f'({WRITABLE}) | sort -u | while read d; do {each}; rm -f "$d/x" 2>/dev/null; done'

    out = await run(product, kind, script, within=50.0)

    own = f"mcp-bridge/default/-/{kind}"
    writable = {"/dev/shm", "/tmp", "/var/tmp", f"/var/lib/{own}", f"/var/cache/{own}"}
    assert set(out.splitlines()) - {"/srv/given"} == writable
    # The same in the same root, without the rest of the sandbox.
    words = ["--property=RootDirectory=/srv/images/open", "--property=User=nobody", "--"]
    each = "cp /bin/true /everybodys/x && /everybodys/x && echo executed && rm /everybodys/x"
    plain = ["systemd-run", "--quiet", "--pipe", "--wait", *words, "/bin/sh", "-c", each]
    assert product.container.check(*plain) == "executed\n"


@pytest.mark.parametrize("kind", KINDS)
async def test_shared_paths_are_read_and_written(product, kind):
    script = f"cat /srv/given/file; echo {kind} > /srv/given/{kind}; echo no > {HERE}/new; ls /srv"

    out = await run(product, kind, script)

    assert out == "of the host\ngiven\nservers\n"
    assert product.container.check("cat", f"/srv/given/{kind}") == f"{kind}\n"
    assert product.container.run("test", "-e", f"{HERE}/new").status != 0


@pytest.mark.parametrize("kind", KINDS)
async def test_its_state_is_kept_when_it_is_started_again(product, kind):
    await run(product, kind, "echo kept > $HOME/file; echo kept > $XDG_CACHE_HOME/file; pwd")
    before = properties(product.container, service(kind), "InvocationID")
    product.container.check("systemctl", "stop", service(kind))
    product.container.check("systemctl", "start", service(kind))

    out = await run(product, kind, "cat $HOME/file $XDG_CACHE_HOME/file; pwd")

    assert properties(product.container, service(kind), "InvocationID") != before
    assert out == f"kept\nkept\n/var/lib/mcp-bridge/default/-/{kind}\n"
    assert product.container.check("cat", f"/var/lib/private/mcp-bridge/default/-/{kind}/file")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_credential_comes_in(product, kind):
    digest = await run(product, kind, 'printf %s "$TOKEN" | sha256sum')

    assert digest.split()[0] == hashlib.sha256(SECRET.encode()).hexdigest()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_with_a_network_asks_the_host_s_resolver(product, kind):
    script = "cat /etc/resolv.conf"

    assert await run(product, f"{kind}-asks", script) == "nameserver 192.0.2.53\n"
    assert "192.0.2.53" not in await run(product, kind, script)


@pytest.mark.parametrize("kind", KINDS)
async def test_memory_above_the_limit_is_not_to_be_had(product, kind):
    script = f'/usr/bin/python3 -c "{EATER}"'

    assert await run(product, f"{kind}-more", script) == f"{200 << 20}\n"
    assert await run(product, f"{kind}-less", script) == ""


async def test_what_runs_as_root_at_its_end_is_the_host_s(product):
    await run(product, "directory", "true")
    unit = service("directory")
    invocation = properties(product.container, unit, "InvocationID")["InvocationID"]
    product.container.check("systemctl", "stop", unit)

    def record():
        return product.container.run("cat", f"/run/mcp-bridge/ended/{invocation}.json").out

    written = await eventually(record, what="a record of the end")
    assert json.loads(written)["result"] == "success"
    said = [str(entry.get("MESSAGE")) for entry in entries(product.container, f"--unit={unit}")]
    uids = {line for line in said if line.startswith("python3 of uid")}
    assert uids
    assert "python3 of uid 0" not in uids
    # Nothing that only the server needs has been made on the host.
    assert product.container.run("test", "-e", "/run/mcp-bridge/launch.py").status != 0
    product.container.check("systemctl", "start", unit)  # or it is stopped by the operator


@pytest.mark.parametrize("kind", KINDS)
def test_doctor_starts_it_in_its_root_and_learns_how_it_ended(product, kind):
    done = product.container.run("mcp-bridge", "doctor", kind, timeout=60)

    assert (done.status, done.out.startswith(f"{kind} starts")) == (0, True), done.out
    assert done.err == "mcp-bridge: try 1: as it is\n"


@pytest.mark.parametrize("kind", KINDS)
def test_the_exposure_is_told_and_verify_has_nothing_to_say(product, kind, record_property):
    unit = service(kind)
    verified = product.container.run("systemd-analyze", "verify", "--man=no", unit)
    shown = product.container.check("systemd-analyze", "security", "--no-pager", unit)

    assert (verified.out, verified.err) == ("", "")
    assert exposure_in(shown) <= exposure_in(
        product.container.check("systemd-analyze", "security", "--no-pager", service("free"))
    )
    # What apply can know of it: the unit's text alone.
    script = 'systemctl cat "$0" > /tmp/x@y.service && systemd-analyze security --offline=true "$1"'
    offline = product.container.check("sh", "-c", script, unit, "/tmp/x@y.service")
    record_property("exposure", exposure_in(offline))


def exposure_in(shown):
    return float(shown.rsplit("Overall exposure level", 1)[1].split(":")[1].split()[0])


WRONG = {
    "directory without python3": (
        {"root": {"directory": "/srv/images/bare"}},
        ["root.directory", "/usr/bin/python3", "apt-get install python3"],
    ),
    "image without python3": (
        {"root": {"image": "/srv/images/bare.squashfs"}},
        ["root.image", "/usr/bin/python3", "make sandbox-image"],
    ),
    "no image": ({"root": {"image": "/srv/none"}}, ["root.image", "/srv/none: No such file"]),
    "no file system": ({"root": {"image": "/etc/hostname"}}, ["root.image", "cannot mount it"]),
    "image of a stranger": (
        {"root": {"image": "/srv/images/theirs"}},
        ["root.image", "root alone may write", "chown root"],
    ),
    "program": ({"command": ["/usr/bin/nothing"]}, ["command[0]", "/usr/bin/nothing"]),
    "bare name": ({"command": ["nothing"]}, ["command[0]", "/usr/local/bin:/usr/bin:/bin"]),
    "npx": ({"command": ["npx", "-y", "x"]}, ["command[0]", "installs on the host"]),
    "cwd": ({"cwd": "/nowhere"}, ["cwd", "/nowhere"]),
    "mount point": (
        {"paths": {"read": [HERE, "/opt/mcp-servers"]}},
        ["paths.read[1]", "/opt/mcp-servers", "mkdir -p /opt/mcp-servers"],
    ),
}


def test_apply_looks_at_roots_from_its_own_sandbox_too(product):
    container = product.container
    wrong = definition("wrong", "image", command=["nothing"])
    unit = "mcp-bridge-apply.service"
    product.write_servers(definition("image", "image"), wrong)

    failed = container.run("systemctl", "start", unit, timeout=60.0)

    assert failed.status != 0
    assert product.accepted()["wrong"]["why"].startswith("$.command[0]: the root has no nothing")
    serve(product).checked()
    assert container.run("systemctl", "start", unit, timeout=60.0).status == 0
    assert properties(container, unit, "Result") == {"Result": "success"}


def test_what_a_root_lacks_is_told_at_apply_by_name(product):
    container = product.container
    container.check("sh", "-ec", "touch /srv/images/theirs; chown nobody /srv/images/theirs")
    before = product.accepted()
    for name, (keys, words) in WRONG.items():
        done = serve(product, definition("wrong", "image", **keys))

        assert done.status != 0, name
        told = f"{done.out}{done.err}"
        assert all(word in told for word in words), (name, told)
        found = product.accepted()
        if name != "npx":  # which no host could start in a root, so that the file is refused
            assert found.pop("wrong")["state"] == "refused"
        found.pop("wrong", None)
        assert found == before, name
    assert serve(product).status == 0
