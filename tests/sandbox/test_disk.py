"""What servers take of the disk: measured, shown, cleaned; what is needed never goes."""

import asyncio
import json

import pytest

from support.containers import entries
from support.product import echo

pytestmark = pytest.mark.lab

GC = "mcp-bridge-gc.service"
STATE, CACHE = (f"/var/{kind}/private/mcp-bridge/default/-" for kind in ("lib", "cache"))
STORE = "/var/lib/mcp-bridge/packages/npm"
MIB = 1 << 20


def unit_of(name):
    return f"autobot-mcp-bridge@{name}.service"


def there(product, *paths):
    return {path for path in paths if product.container.run("test", "-e", path).status == 0}


def fill(product, path, mib):
    """A file in a server's directory, as large."""
    product.container.check("dd", "if=/dev/urandom", f"of={path}", "bs=1M", f"count={mib}")


def measure(product):
    product.container.check("systemctl", "start", GC, timeout=60.0)


async def used(product, *names):
    """Have servers run once, so that their directories are there."""
    await product.serve(*(echo(name) for name in names))
    for name in names:
        async with product.modern(name) as client:
            await client.text("pid")


async def test_the_disk_of_each_server_is_shown_by_list_and_metrics(product):
    await used(product, "large", "small")
    fill(product, f"{STATE}/large/file", 5)
    fill(product, f"{CACHE}/large/file", 3)
    measure(product)

    sizes = {}
    for name in ("large", "small"):
        for kind in ("state", "cache"):
            told = await product.samples(server=name, kind=kind)
            sizes[name, kind] = told["mcp_bridge_disk_bytes"]
    assert 5 * MIB <= sizes["large", "state"] < 6 * MIB
    assert 3 * MIB <= sizes["large", "cache"] < 4 * MIB
    assert sizes["small", "state"] < MIB
    assert "\nmcp_bridge_packages_bytes " in await product.metrics()

    rows = [line.split() for line in product.cli("list", "--wide").splitlines()]
    shown = {row[0]: dict(zip(rows[0], row, strict=False)) for row in rows[1:]}
    assert shown["large"]["DISK"].startswith("5.")
    assert shown["large"]["CACHE"].startswith("3.")
    assert shown["large"]["MEMORY"].endswith("M")
    assert "DISK" not in product.cli("list")


async def test_systemctl_clean_empties_a_server_that_does_not_run(product):
    await used(product, "cleaned", "other")
    paths = [f"{root}/{name}/file" for root in (STATE, CACHE) for name in ("cleaned", "other")]
    for path in paths:
        fill(product, path, 1)
    clean = ("systemctl", "clean", "--what=state,cache", unit_of("cleaned"))
    assert product.container.run(*clean).status != 0
    assert there(product, *paths) == {*paths}

    product.container.check("systemctl", "stop", unit_of("cleaned"))
    product.container.check(*clean)

    assert there(product, *paths) == {f"{root}/other/file" for root in (STATE, CACHE)}
    product.cli("start", "cleaned")
    async with product.modern("cleaned") as client:
        assert await client.text("echo", text="again") == "again"
    assert there(product, f"{STATE}/cleaned", f"{CACHE}/cleaned") == {
        *(f"{STATE}/cleaned", f"{CACHE}/cleaned")
    }


async def test_what_a_removed_server_has_left_goes_and_a_running_one_s_stays(product):
    await used(product, "stays", "goes")
    paths = {
        (root, name): f"{root}/{name}/file" for root in (STATE, CACHE) for name in ("stays", "goes")
    }
    for path in paths.values():
        fill(product, path, 2)
    await product.serve(echo("stays"))
    async with product.session("stays") as client:
        pid = await client.text("pid")

        rehearsed = json.loads(product.cli("gc", "--dry-run", "--json"))
        found = {(row["what"], row["name"]): row for row in rehearsed["would_remove"]}
        assert found["cache", "goes"]["path"] == f"{CACHE}/goes"
        assert 2 * MIB <= found["cache", "goes"]["bytes"] < 3 * MIB
        assert {name for _, name in found} & {"stays"} == set()
        assert there(product, *paths.values()) == {*paths.values()}

        said = product.cli("gc")
        assert f"{CACHE}/goes" in said
        assert said.splitlines()[-1].endswith("freed")
        assert there(product, *paths.values()) == {*paths.values()} - {paths[CACHE, "goes"]}

        product.cli("gc", "--state")
        assert there(product, *paths.values()) == {paths[STATE, "stays"], paths[CACHE, "stays"]}
        assert product.cli("gc", "--state").strip() == "nothing to remove"
        assert await client.text("pid") == pid


async def test_the_timer_s_run_leaves_what_has_been_unused_for_less_than_a_week(product):
    await used(product, "stays", "late")
    await product.serve(echo("stays"))
    known = "/var/lib/mcp-bridge/disk.json"
    measure(product)
    assert there(product, f"{CACHE}/late")
    since = json.loads(product.container.check("cat", known))
    assert f"{CACHE}/late" in since["unused"]

    since["unused"][f"{CACHE}/late"] -= 8 * 86400
    product.container.check("sh", "-c", f"cat > {known}", stdin=json.dumps(since))
    measure(product)

    assert not there(product, f"{CACHE}/late")
    assert there(product, f"{STATE}/late")
    assert any("late" in str(entry["MESSAGE"]) for entry in entries(product.container, "-u", GC))
    shown = product.container.check("systemctl", "list-timers", "--all", "mcp-bridge-gc.timer")
    assert "mcp-bridge-gc.service" in shown
    product.cli("gc", "--state")


async def test_a_package_goes_once_no_server_and_no_process_uses_it(product):
    container = product.container
    await product.serve(echo("any"))
    for name in ("@acme/used@1.0.0", "unused@1.0.0"):
        container.write(f"{STORE}/{name}/file", "x")
        container.check("touch", "--date=-2hours", f"{STORE}/{name}")
    container.check("chown", "-R", "root:root", STORE)
    drop_in = f"/etc/systemd/system/{GC}.d/90-now.conf"
    program = "/usr/lib/mcp-bridge/venv/bin/mcp-bridge"
    container.write(drop_in, f"[Service]\nExecStart=\nExecStart={program} gc --quiet\n")
    container.check("systemctl", "daemon-reload")
    sandbox = ("--property=DynamicUser=yes", "--property=PrivateUsers=yes", "--slice=mcpbridge")
    words = ("/bin/sh", "-c", "sleep 600; true", f"{STORE}/@acme/used@1.0.0/file")
    user = "autobot-mcp-bridge-user"
    container.check("systemd-run", f"--unit={user}", *sandbox, "--", *words)
    try:
        await asyncio.to_thread(measure, product)
        assert there(product, f"{STORE}/@acme/used@1.0.0", f"{STORE}/unused@1.0.0") == {
            f"{STORE}/@acme/used@1.0.0"
        }
    finally:
        container.check("systemctl", "stop", user)
    await asyncio.to_thread(measure, product)
    container.check("rm", drop_in)
    container.check("systemctl", "daemon-reload")
    assert not there(product, f"{STORE}/@acme")
