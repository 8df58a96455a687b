"""What commands have returned from is in force; what `status` shows of a unit's sandbox."""

import asyncio
import json
import time

import pytest

from support.client import code_of
from support.installed import SERVERS
from support.product import echo

pytestmark = pytest.mark.lab

COMMAND = ("--", "/usr/bin/python3", f"{SERVERS}/echo.py")


async def run(product, *words):
    return await asyncio.to_thread(product.container.run, *words)


async def outcome(client):
    """The text of an answered call, or the stable word of an error."""
    answer = await client.call("echo", {"text": "hello"})
    return code_of(answer) if "error" in answer else answer["result"]["content"][0]["text"]


async def test_what_add_disable_and_enable_have_returned_from_is_in_force(product):
    await product.serve(echo("other"))
    options = ("--network", "loopback", "--memory", "256M", "--set", "limits.tasks=64")
    added = await run(product, "mcp-bridge", "add", "typed", *options, *COMMAND)
    assert (added.status, "not in force" in added.err) == (0, False)
    token = next(line.split()[1] for line in added.out.splitlines() if line.startswith("token"))
    async with product.modern("typed", token) as client:
        assert await outcome(client) == "hello"
        assert (await run(product, "mcp-bridge", "disable", "typed")).status == 0
        assert await outcome(client) == "disabled"
        assert (await run(product, "mcp-bridge", "enable", "typed")).status == 0
        assert await outcome(client) == "hello"

        rotated = await run(product, "mcp-bridge", "token", "rotate", "typed", "--overlap", "0s")
        assert (await client.send(client.call_of("pid", {}, 1))).status == 401
    async with product.modern("typed", rotated.out.strip()) as client:
        assert await outcome(client) == "hello"
    await run(product, "mcp-bridge", "remove", "typed", "--purge")


async def test_an_added_server_that_the_host_cannot_serve_says_so_at_once(product):
    await product.serve(echo("other"))
    added = await run(product, "mcp-bridge", "add", "typed", "--read", "/srv/gone", *COMMAND)

    assert added.status == 78
    assert "typed is not served so: $.paths.read[0]: /srv/gone: No such file" in added.err
    assert added.out.count("token  ") == 1
    await run(product, "mcp-bridge", "remove", "typed", "--purge")


async def test_status_shows_the_sandbox_at_a_glance(product, record_property):
    secret = ("mcp-bridge", "secret", "set", "word")
    await asyncio.to_thread(product.container.check, *secret, stdin="hunter2")
    network = {"mode": "list", "allow": ["192.0.2.0/24"]}
    keys = {"credentials": {"TOKEN": "word"}, "max_exposure": 2, "network": network}
    await product.serve(echo("shown", **keys), echo("other"))

    began = time.monotonic()
    shown = (await run(product, "mcp-bridge", "status", "shown")).out
    record_property("status_seconds", round(time.monotonic() - began, 2))

    assert "list: 192.0.2.0/24" in shown
    assert "TOKEN from word" in shown and "hunter2" not in shown
    assert "memory 512M, cpu 100%, tasks 128, open files 1024" in shown
    assert "0, shared" in shown
    found = json.loads((await run(product, "mcp-bridge", "status", "shown", "--json")).out)
    assert found["sandbox"]["credentials"] == {"TOKEN": "word"}
    figure = found["sandbox"]["exposure"]
    assert f"profile python, exposure {figure:g} of at most 2" in shown
    plain = json.loads((await run(product, "mcp-bridge", "status", "other", "--json")).out)
    assert plain["sandbox"]["exposure"] == pytest.approx(0.2)
    assert plain["sandbox"]["exposure"] < figure < 2
    wide = (await run(product, "mcp-bridge", "list", "--wide")).out.splitlines()
    (row,) = (line for line in wide if line.startswith("shown "))
    assert "PROFILE  NETWORK" in wide[0] and "python   list" in row
