"""drain.yml and rejoin.yml: open calls end, new connections wait, and nothing is lost."""

import asyncio

import pytest

from rollout.playbooks import BIN
from rollout.served import Served
from support.containers import properties
from support.product import PROXY
from support.proxy_unit import unit_of
from support.waiting import eventually, remains

pytestmark = [pytest.mark.lab, pytest.mark.network]


@pytest.fixture(scope="module")
def hosts(lab, need, tmp_path_factory):
    need(str(BIN / "ansible-playbook"))
    made = Served(lab, tmp_path_factory.mktemp("drain"), "drn")
    try:
        yield made.up("drain.yml", "rejoin.yml")
    finally:
        made.down()


async def test_open_calls_end_new_ones_wait_and_are_answered_after_the_rejoin(hosts):
    clients = [hosts.session(container, hosts.token) for container in hosts.containers]
    others = [hosts.session(container, hosts.token) for container in hosts.containers]
    for client in (*clients, *others):
        await client.initialize()
    before = [properties(c, unit_of("echo"), "InvocationID") for c in hosts.containers]
    hosts.run("drain.yml", "--check", "--diff").checked()
    open_calls = [asyncio.create_task(c.text("echo", text="open", delay=3)) for c in clients]

    async def seen():
        states = [await other.text("state") for other in others]
        return all('"tools/call": 1' not in state for state in states)

    await eventually(seen)
    drain = asyncio.create_task(hosts.run_meanwhile("drain.yml"))
    assert await asyncio.gather(*open_calls) == ["open"] * len(clients)
    (await drain).checked()
    for container in hosts.containers:
        assert properties(container, PROXY, "SubState")["SubState"] == "start-pre"
    waiting = [asyncio.create_task(c.text("echo", text="late", within=200)) for c in clients]
    await remains(lambda: not any(task.done() for task in waiting))
    assert set((await hosts.run_meanwhile("drain.yml")).checked().changed.values()) == {0}
    refused = await hosts.run_meanwhile("upgrade.yml")
    assert refused.status != 0
    assert "playbooks/rejoin.yml" in refused.output
    shown = (await hosts.run_meanwhile("rejoin.yml", "--check", "--diff")).checked()
    assert all(shown.changed.values())

    (await hosts.run_meanwhile("rejoin.yml")).checked()

    assert await asyncio.gather(*waiting) == ["late"] * len(clients)
    assert [properties(c, unit_of("echo"), "InvocationID") for c in hosts.containers] == before
    assert set((await hosts.run_meanwhile("rejoin.yml")).checked().changed.values()) == {0}
    for container in hosts.containers:
        assert "drained" not in container.check("systemctl", "cat", PROXY)
    for client in (*clients, *others):
        await client.drop()
