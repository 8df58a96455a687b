"""The installed product: a file is written, and a call over HTTP is answered by a sandboxed unit."""

import pytest

from autobot_mcp_bridge.units.host import static
from support.containers import properties, reaches
from support.product import echo
from support.waiting import eventually

pytestmark = pytest.mark.lab

APPLY = "mcp-bridge-apply.service"
PATHS = ("mcp-bridge-apply.path", "mcp-bridge-fetched.path")
# Ten times what systemd-analyze(1) calls the exposure: the network costs about 1.
EXPOSURE = {"mcp-bridge-proxy.service": 20, "mcp-bridge-fetch@any.service": 20}


async def test_a_written_file_alone_leads_to_a_unit_that_answers_over_http(product):
    await product.serve(echo("files"), echo("web", tenant="acme", project="site"))

    for name in ("files", "acme.site.web"):
        async with product.session(name) as client:
            assert await client.text("echo", text=f"hello {name}") == f"hello {name}"
        service = f"autobot-mcp-bridge@{name}.service"
        found = properties(product.container, service, "ActiveState", "DynamicUser")
        assert found == {"ActiveState": "active", "DynamicUser": "yes"}
    proxy = properties(product.container, "mcp-bridge-proxy.service", "User", "NRestarts")
    assert proxy == {"User": "mcp-bridge", "NRestarts": "0"}
    assert "mcp_bridge" in await product.metrics()


async def test_a_server_that_is_taken_out_of_the_file_leaves_no_unit(product):
    await product.serve(echo("stays"), echo("goes"))
    await product.serve(echo("stays"))

    units = product.container.check("systemctl", "list-units", "--all", "--plain", "*goes*")
    assert "autobot" not in units
    assert product.container.run("ls", "/run/mcp-bridge/goes.sock").status != 0


async def test_of_a_removed_server_no_record_of_its_ends_is_left(product):
    ended = ("find", "/run/mcp-bridge/ended", "-mindepth", "1", "-name", "*")
    await product.serve(echo("falls"), echo("stays"))
    await product.serve(echo("stays"))
    await gone(product, "falls")
    before = product.container.check(*ended)
    await product.serve(echo("falls"), echo("stays"))
    for _ in range(2):
        async with product.session("falls") as client:
            await client.text("echo", text="up")
        product.container.check("systemctl", "kill", "-s", "KILL", "mcp-bridge@falls")
        unit = "autobot-mcp-bridge@falls.service"
        await reaches(product.container, unit, ActiveState="failed")
    assert product.container.check(*ended) != before

    await product.serve(echo("stays"))
    await gone(product, "falls")
    assert product.container.check(*ended) == before


async def gone(product, name):
    async def is_gone():
        return product.container.run("test", "-e", f"/run/mcp-bridge/{name}.sock").status != 0

    await eventually(is_gone, within=60, what=f"{name} is gone")


async def test_a_mistake_in_the_file_keeps_what_was_in_force(product):
    await product.serve(echo("good"))
    token = product.token("good")
    product.write("/etc/mcp-bridge/servers.json", '{"version": 1, "servers": [{"name": 3}]}')
    await reaches(product.container, APPLY, ActiveState="failed", ExecMainStatus="65")

    async with product.session("good", token) as client:
        assert await client.text("echo", text="still") == "still"
    await eventually(lambda: config_is(product, 0))
    assert "servers.json: $.servers[0].name" in await product.get("/healthz")
    assert any("$.servers[0].name" in line for line in product.logs("-t", "mcp-bridge-proxy"))

    await product.serve(echo("mended"))
    await eventually(lambda: config_is(product, 1))


async def config_is(product, value):
    return f"mcp_bridge_config_ok {value}.0" in await product.metrics()


# Ends only when it is let go, after apply has looked at the files for the last time.
LINGERING = "[Service]\nExecStartPost=/bin/sh -c 'until test -e /run/go; do sleep 0.05; done'\n"


async def test_a_change_that_comes_while_apply_ends_is_not_lost(product):
    await product.serve()
    drop_in = f"/run/systemd/system/{APPLY}.d/90-test.conf"
    product.container.check("rm", "-f", "/run/go")
    product.container.write(drop_in, LINGERING)
    product.container.check("systemctl", "daemon-reload")
    try:
        product.write_servers(echo("early"))
        await reaches(product.container, APPLY, SubState="start-post", within=20)
        product.write_servers(echo("early"), echo("late"))
        product.container.check("touch", "/run/go")

        await product.applied("early", "late")
    finally:
        product.container.check("touch", "/run/go")
        product.container.check("rm", drop_in)
        product.container.check("systemctl", "daemon-reload")


async def test_a_rehearsal_says_that_nothing_would_change_only_where_it_is_so(product):
    await product.serve(echo("files"))
    assert "no unit would change" in product.cli("apply", "--check")

    other = '{"version": 1, "servers": []}'
    product.container.check("mkdir", "-p", "/root/other")
    product.write("/root/other/servers.json", other)
    said = product.cli("--config-dir=/root/other", "apply", "--check")
    assert "would be removed  files" in said
    assert "no unit" not in said


def test_a_second_install_changes_nothing_and_says_so(product):
    assert product.install().splitlines()[-1].endswith("nothing was changed")


def test_systemd_has_nothing_to_say_of_the_units_and_little_to_fear(product):
    units = [name for name in static.FILES if name.endswith((".service", ".socket", ".path"))]
    names = [name.replace("@.", "@verify.") for name in units]
    done = product.container.run("systemd-analyze", "verify", "--man=no", *names, timeout=60.0)
    # An instance of the servers' template has its command by its drop-in only.
    said = [line for line in done.err.splitlines() if "autobot-mcp-bridge@verify" not in line]
    assert said == []

    for unit, most in EXPOSURE.items():
        words = ("systemd-analyze", "security", "--no-pager", f"--threshold={most}", unit)
        assert product.container.run(*words).status == 0, unit


async def test_a_limit_is_changed_while_the_server_runs_and_paths_by_a_new_process(product):
    unit = "autobot-mcp-bridge@grows.service"
    await product.serve(echo("grows", limits={"memory": "256M", "tasks": 40}))
    async with product.session("grows") as client:
        pid = await client.text("pid")
        await product.serve(echo("grows", limits={"memory": "384M", "tasks": 50}))
        wanted = {"MemoryMax": str(384 << 20), "TasksMax": "50"}
        await reaches(product.container, unit, **wanted)
        await eventually(lambda: cgroup(product, unit, "pids.max") == "50")
        assert cgroup(product, unit, "memory.limit_in_bytes") == str(384 << 20)
        assert await client.text("pid") == pid

        await product.serve(echo("grows", paths={"read": ["/srv"]}))
        await eventually(lambda: another(client, pid), within=10)


async def another(client, pid):
    return await client.text("pid") != pid


def cgroup(product, unit, name):
    """A file of the unit's own cgroup, whatever controllers' tree it lies in."""
    group = properties(product.container, unit, "ControlGroup")["ControlGroup"]
    script = f"cat /sys/fs/cgroup/*{group}/{name} 2>/dev/null | head -1"
    return product.container.check("sh", "-c", script).strip()


async def test_an_apply_that_is_killed_is_ended_by_the_next(product):
    await product.serve(echo("kept", limits={"tasks": 40}))
    async with product.session("kept") as client:
        await client.text("pid")
    container = product.container
    container.check("systemctl", "stop", *PATHS)
    try:
        product.write_servers(echo("kept", limits={"tasks": 50}), echo("fresh"))
        # Stopped by its own first word to systemd: the drop-ins are there, nothing else is.
        wrapper = "/run/stand-in/systemctl"
        container.write(wrapper, "#!/bin/sh\nkill -9 $PPID\n", mode=0o755)
        script = f"mount --bind {wrapper} /usr/bin/systemctl; mcp-bridge apply"
        assert container.run("unshare", "--mount", "sh", "-c", script).status != 0
        assert "fresh" not in product.accepted()

        product.cli("apply")
    finally:
        container.check("systemctl", "start", *PATHS)
    found = properties(container, "autobot-mcp-bridge@fresh.socket", "ActiveState", "UnitFileState")
    assert found == {"ActiveState": "active", "UnitFileState": "enabled"}
    assert cgroup(product, "autobot-mcp-bridge@kept.service", "pids.max") == "50"
    assert container.run("test", "-e", "/var/lib/mcp-bridge/unfinished.json").status != 0


async def test_a_server_whose_socket_is_masked_holds_up_no_other(product):
    await product.serve(echo("good"))
    socket = "autobot-mcp-bridge@hidden.socket"
    product.container.check("systemctl", "mask", socket)
    try:
        await product.serve(echo("good"), echo("hidden"), echo("shown"))
        async with product.session("shown") as client:
            assert await client.text("echo", text="x") == "x"
        assert any(socket in line for line in product.logs("-t", "mcp-bridge-apply"))
    finally:
        product.container.check("systemctl", "unmask", socket)


@pytest.mark.parametrize("deed", ["echo '{' >", "rm"])
async def test_a_lost_accepted_json_ends_nothing_and_is_made_anew(product, deed):
    await product.serve(echo("good"))
    token = product.token("good")
    async with product.session("good", token) as client:
        pid = await client.text("pid")
        product.container.check("sh", "-c", f"{deed} /var/lib/mcp-bridge/accepted.json")
        await eventually(lambda: config_is(product, 0))
        assert await client.text("pid") == pid

        product.cli("apply")
        await eventually(lambda: config_is(product, 1))
    # The next proxy can read what apply has written.
    product.container.check("systemctl", "restart", "mcp-bridge-proxy")
    await product.applied("good")
    async with product.session("good", token) as client:
        assert await client.text("pid") == pid


async def test_a_token_of_a_deleted_directory_is_one_that_the_proxy_can_read(product):
    await product.serve(echo("good"))
    product.container.check("rm", "-r", "/var/lib/mcp-bridge/tokens.d")

    async with product.session("good") as client:
        assert await client.text("echo", text="x") == "x"
