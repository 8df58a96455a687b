"""Versions of packages exchanged under servers in use: there, back, and not at all."""

import json

import pytest

from lab import recipe
from support.containers import properties
from support.made import JS_SERVER, PY_SERVER, npx, product_with_registry, uvx
from support.waiting import eventually

pytestmark = pytest.mark.lab

STORE = "/var/lib/mcp-bridge/packages"
WITHIN = 30.0
UPGRADE_TIMEOUT = 60.0


@pytest.fixture(scope="module", params=recipe.SUITES)
def upgrading(request, lab, need):
    suite = request.param
    with product_with_registry(lab, suite, f"upgrd-{suite}"[:15], need) as product:
        yield product


def run(product, *words):
    return product.container.run("mcp-bridge", *words, timeout=UPGRADE_TIMEOUT)


def publish(registry, kind, name, versions):
    if kind == "npm":
        registry.add_npm(name, versions, JS_SERVER)
    else:
        registry.add_pypi(name, versions, PY_SERVER)


def server(kind, name, package):
    return (
        npx(name, f"{package}@^1")
        if kind == "npm"
        else uvx(name, "--from", f"{package}<2", package)
    )


async def version_of(client, wanted):
    """Wait until calls of this session are answered by that version."""

    async def is_so():
        return await client.text("version", within=WITHIN) == wanted

    await eventually(is_so, within=WITHIN, what=f"version {wanted} answers")


@pytest.mark.parametrize("kind", ["npm", "pypi"])
async def test_a_session_meets_the_new_version_after_an_upgrade_and_the_old_after_a_rollback(
    upgrading, kind
):
    registry, package = upgrading.registry, f"there-{kind}"
    one, two = f"{kind}-one", f"{kind}-two"
    publish(registry, kind, package, ["1.0.0"])
    upgrading.write_servers(server(kind, one, package), server(kind, two, package))
    await upgrading.applied(one, two, within=WITHIN)

    async with upgrading.session(one) as client, upgrading.session(two) as other:
        assert await client.text("version") == "1.0.0"
        assert await other.text("version") == "1.0.0"
        publish(registry, kind, package, ["1.0.0", "1.1.0", "2.0.0"])
        done = run(upgrading, "outdated", "--json")
        assert done.status == 1, done.err
        row = json.loads(done.out)["servers"][0]
        versions = [row[key] for key in ("installed", "allowed", "newest")]
        assert versions == ["1.0.0", "1.1.0", "2.0.0"]

        done = run(upgrading, "upgrade", one)
        assert done.status == 0, done.err
        assert "1.0.0 -> 1.1.0" in done.out
        assert f"changed with it: {two}" in done.err
        await version_of(client, "1.1.0")
        await version_of(other, "1.1.0")
        assert run(upgrading, "outdated").status == 0

        registry.gate.clear()  # whoever asks the registry now waits for ever
        done = run(upgrading, "upgrade", one, "--rollback")
        registry.gate.set()
        assert done.status == 0, done.err
        await version_of(client, "1.0.0")
        await version_of(other, "1.0.0")
        invocation = invocation_of(upgrading, one)
        # Nothing is left to be done, and so nothing is restarted.
        upgrading.cli("apply")
        upgrading.cli("reload")
        assert await client.text("version") == "1.0.0"
        assert invocation_of(upgrading, one) == invocation
    found = upgrading.container.check("find", STORE, "-not", "-user", "root")
    assert found == ""


@pytest.mark.parametrize("kind", ["npm", "pypi"])
async def test_a_version_that_cannot_be_installed_leaves_the_old_one_serving(upgrading, kind):
    registry, package = upgrading.registry, f"broken-{kind}"
    one = f"{kind}-broken"
    publish(registry, kind, package, ["1.0.0"])
    upgrading.write_servers(server(kind, one, package))
    await upgrading.applied(one, within=WITHIN)

    async with upgrading.session(one) as client:
        assert await client.text("version") == "1.0.0"
        invocation = invocation_of(upgrading, one)
        publish(registry, kind, package, ["1.0.0", "1.1.0"])
        registry.spoil("1.1.0")
        done = run(upgrading, "upgrade", one)
        assert done.status == 1
        assert "version 1.0.0 stays in force" in done.err
        # Nor does a look at the whole configuration change anything.
        upgrading.cli("apply")
        upgrading.cli("reload")
        assert await client.text("version") == "1.0.0"
        assert invocation_of(upgrading, one) == invocation

        publish(registry, kind, package, ["1.0.0", "1.1.0"])
        assert run(upgrading, "upgrade", one).status == 0
        await version_of(client, "1.1.0")


async def test_an_upgrade_while_no_proxy_runs_is_met_by_the_next_one(upgrading):
    registry, unit = upgrading.registry, "mcp-bridge-proxy.service"
    publish(registry, "pypi", "meanwhile", ["1.0.0"])
    upgrading.write_servers(server("pypi", "late", "meanwhile"))
    await upgrading.applied("late", within=WITHIN)

    async with upgrading.session("late") as client:
        assert await client.text("version") == "1.0.0"
        publish(registry, "pypi", "meanwhile", ["1.0.0", "1.1.0"])
        # Killed and kept from coming back: its servers live on, with their pipes at systemd.
        upgrading.container.write(
            f"/run/systemd/system/{unit}.d/late.conf", "[Service]\nRestartSec=1h\n"
        )
        upgrading.container.check("systemctl", "daemon-reload")
        upgrading.container.check("systemctl", "kill", "--signal=SIGKILL", unit)
        try:
            done = run(upgrading, "upgrade", "late")
        finally:
            upgrading.container.check("rm", "-r", f"/run/systemd/system/{unit}.d")
            upgrading.container.check("systemctl", "daemon-reload")
            upgrading.container.check("systemctl", "start", unit)
        assert done.status == 0, done.err
        await client.drop()
        await version_of(client, "1.1.0")


async def test_a_half_deleted_package_is_installed_again_as_the_version_that_it_was(upgrading):
    registry = upgrading.registry
    publish(registry, "npm", "halved", ["1.0.0"])
    upgrading.write_servers(server("npm", "halved", "halved"))
    await upgrading.applied("halved", within=WITHIN)
    publish(registry, "npm", "halved", ["1.0.0", "1.1.0"])
    upgrading.container.check("rm", "-r", f"{STORE}/npm/halved@1.0.0/node_modules")

    upgrading.cli("apply")
    await upgrading.applied("halved", within=WITHIN)

    async with upgrading.session("halved") as client:
        assert await client.text("version") == "1.0.0"


async def test_who_asks_the_registries_is_not_root(upgrading):
    """A build of a package would run there; `owner` is who has made the npm that is asked."""
    container, registry = upgrading.container, upgrading.registry
    publish(registry, "npm", "asked", ["1.0.0"])
    upgrading.write_servers(npx("asking", "asked@1.0.0"))
    await upgrading.applied("asking", within=WITHIN)
    npm = container.check("cat", "/usr/local/bin/npm")
    told = 'echo "$(id -u) $(touch /var/lib/mcp-bridge/evil 2>&1)" >&2; exit 3'
    container.write("/usr/local/bin/npm", f"#!/bin/sh\n{told}\n", 0o755)
    try:
        done = run(upgrading, "outdated", "--json")
    finally:
        container.write("/usr/local/bin/npm", npm, 0o755)

    assert done.status == 69
    why = json.loads(done.out)["servers"][0]["why"]
    assert "npm exited with status 3: " in why
    assert "Read-only" in why
    assert int(why.split("status 3: ")[1].split()[0]) >= 61184  # a dynamic user's (systemd.exec(5))
    # The control: root itself would have been let.
    container.check("touch", "/var/lib/mcp-bridge/evil")
    container.check("rm", "/var/lib/mcp-bridge/evil")


def invocation_of(product, name):
    unit = f"autobot-mcp-bridge@{name}.service"
    return properties(product.container, unit, "InvocationID")["InvocationID"]
