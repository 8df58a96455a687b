"""A server that this host cannot give what its definition asks for holds up no other."""

import asyncio
import json

import pytest

from support.client import answer_to, code_of, error_of
from support.containers import properties
from support.product import echo
from support.waiting import eventually

pytestmark = pytest.mark.lab

UNITS = "/etc/systemd/system"
# What of a definition only the host can judge, and a word of what is said of it.
LACKS = {
    "path": ({"paths": {"read": ["/srv/gone"]}}, "/srv/gone: No such file"),
    "cwd": ({"cwd": "/srv/gone"}, '"/srv/gone": allowed is a directory'),
    "account": ({"run_as": "nobody-here"}, "there is no user nobody-here"),
    "group": ({"groups": ["nobody-here"]}, "there is no group nobody-here"),
    "image": ({"root": {"image": "/srv/gone.squashfs"}}, "/srv/gone.squashfs: No such file"),
    "shared path": ({"paths": {"write": ["/run/mcp-bridge"]}}, "cannot be shared"),
    "bar": ({"max_exposure": 0.0}, "allowed is at most 0"),
}


def lacking(**more):
    return [
        echo(f"lacks-{name.replace(' ', '-')}", tenant="other", **keys, **more)
        for name, (keys, _) in LACKS.items()
    ]


async def run(product, *words):
    return await asyncio.to_thread(product.container.run, *words)


async def row_of(product, name):
    listed = json.loads((await run(product, "mcp-bridge", "list", "--json")).out)["servers"]
    return next(row for row in listed if row["name"] == name)


def drop_in(product, instance):
    path = f"{UNITS}/autobot-mcp-bridge@{instance}.service.d/50-mcp-bridge.conf"
    return product.container.run("cat", path).out


async def test_the_others_come_into_force_and_each_says_what_it_lacks(product):
    await product.serve(echo("mine", env={"A": "old"}))

    product.write_servers(echo("mine", env={"A": "new"}), *lacking(), echo("new"))
    said = await run(product, "mcp-bridge", "apply")

    assert said.status == 78
    assert f"2 ready, 0 installing, 0 failed, {len(LACKS)} left out" in said.out
    checked = await run(product, "mcp-bridge", "check")
    assert checked.status == 65
    told = {name: server["why"] for name, server in product.accepted().items()}
    for server, (_, word) in zip(lacking(), LACKS.values(), strict=True):
        name = f"other.{server['name']}"
        assert word in told[name], name
        assert f"left out  {name}: {told[name]}" in said.out
        assert f"{name}: {told[name]}" in checked.out
        assert drop_in(product, name) == ""
    assert "A=new" in drop_in(product, "mine")
    async with product.session("new") as client:
        assert await client.text("echo", text="served") == "served"
    async with product.modern("other.lacks-cwd") as client:
        response = await client.send(client.call_of("echo", {"text": "x"}, 1))
    assert response.status == 503
    assert code_of(answer_to(response, 1)) == "definition_refused"
    assert '"/srv/gone"' in error_of(answer_to(response, 1))["message"]
    assert '"/srv/gone"' in (await row_of(product, "other.lacks-cwd"))["refused"]


async def test_what_was_in_force_of_it_stays_and_its_process_goes_on(product):
    await product.serve(echo("a", env={"A": "old"}), echo("b"))
    before = drop_in(product, "a")
    async with product.session("a") as client:
        pid = await client.text("pid")

        servers = (
            echo("a", env={"A": "new"}, paths={"read": ["/srv/later"]}),
            echo("b", env={"B": "new"}),
        )
        # On a copy, which no path unit watches.
        await run(product, "install", "-d", "-m", "755", "/run/copy")
        product.write("/run/copy/servers.json", json.dumps({"version": 1, "servers": servers}))
        words = ("--config-dir=/run/copy", "apply", "--check", "--diff")
        shown = await run(product, "mcp-bridge", *words)
        assert shown.status == 78
        assert "left out  a: $.paths.read[0]: /srv/later" in shown.out
        assert "what was applied of it last stays in force" in shown.out
        assert "+++ b/b" in shown.out and "+++ b/a" not in shown.out
        product.write_servers(*servers)
        assert (await run(product, "mcp-bridge", "apply")).status == 78

        assert drop_in(product, "a") == before
        assert "B=new" in drop_in(product, "b")
        assert await client.text("pid") == pid
        await eventually(lambda: is_marked(product, "a"))
        status = (await run(product, "mcp-bridge", "status", "a")).out
        assert "not in force" in status and "/srv/later" in status

        # Also when it is started anew: it is the definition that was in force.
        await run(product, "systemctl", "restart", "mcp-bridge@a")
        assert await client.text("pid") != pid

        await run(product, "install", "-d", "-m", "755", "/srv/later")
        assert (await run(product, "mcp-bridge", "apply")).status == 0
        assert "A=new" in drop_in(product, "a")
        assert (await row_of(product, "a"))["refused"] is None
    await run(product, "rmdir", "/srv/later")


async def is_marked(product, name):
    return bool((await row_of(product, name))["refused"])


async def test_one_that_lacks_something_only_now_is_not_taken_off_the_host(product):
    """The next apply, for whatever reason, finds it lacking; it serves on, as before."""
    await run(product, "install", "-d", "-m", "755", "/srv/passing")
    server = echo("a", paths={"read": ["/srv/passing"]})
    await product.serve(server)
    async with product.session("a") as client:
        pid = await client.text("pid")
        await run(product, "rmdir", "/srv/passing")

        product.write_servers(server, echo("b"))
        assert (await run(product, "mcp-bridge", "apply")).status == 78

        assert await client.text("pid") == pid
        assert "/srv/passing" in drop_in(product, "a")
        state = properties(product.container, "autobot-mcp-bridge@a.socket", "ActiveState")
        assert state == {"ActiveState": "active"}
        async with product.session("b") as other:
            assert await other.text("echo", text="x") == "x"


async def test_a_mistake_of_form_refuses_the_files_as_a_whole(product):
    await product.serve(echo("a"))
    before = product.accepted()

    product.write_servers(echo("a", env={"A": "new"}), echo("b", warm="yes"))
    said = await run(product, "mcp-bridge", "apply")

    assert (said.status, said.out) == (65, "")
    assert "$.servers[1].warm" in said.err
    assert product.accepted() == before


async def test_one_that_may_not_be_started_any_more_is_not(product):
    await product.serve(echo("barred", max_exposure=0.3), echo("free"))
    own = f"{UNITS}/autobot-mcp-bridge@barred.service.d/90-own.conf"
    product.container.write(own, "[Service]\nNoNewPrivileges=no\nPrivateUsers=no\n")
    try:
        assert (await run(product, "mcp-bridge", "apply")).status == 78
        async with product.modern("barred") as client:
            response = await client.send(client.call_of("echo", {"text": "x"}, 1))
            assert code_of(answer_to(response, 1)) == "definition_refused"
        async with product.modern("free") as client:
            assert "result" in await client.call("echo", {"text": "x"})
    finally:
        await run(product, "rm", own)
    assert (await run(product, "mcp-bridge", "apply")).status == 0
    async with product.modern("barred") as client:
        await eventually(lambda: answers(client))


async def answers(client):
    return "result" in await client.call("echo", {"text": "x"})
