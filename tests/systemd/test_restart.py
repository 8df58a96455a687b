"""Restarts of the proxy that lose nothing, on real systemd."""

import asyncio
import json

import pytest

from lab import recipe
from support import product
from support.bridge import new_token
from support.client import text_of
from support.containers import properties, reaches
from support.installed import SERVERS
from support.load import Load
from support.product import PROXY, digest_of, installed_product
from support.proxy_unit import HOLD, faultless, unit_of
from support.waiting import eventually

pytestmark = pytest.mark.lab
TOKEN = new_token()
UPDATED = "notifications/resources/updated"


@pytest.fixture(scope="module", params=recipe.SUITES)
def proxy(request, lab):
    yield from faultless(installed_product(lab, request.param, f"keep-{request.param}"))


def echo(name, **keys):
    return product.echo(name, **{"tokens_sha256": [digest_of(TOKEN)], **keys})


async def test_a_restart_keeps_the_server_and_the_session(proxy):
    async with proxy.serving(echo("kept")):
        async with proxy.session("kept", TOKEN) as client:
            assert await client.text("counter") == "1"
            before = proxy.invocations(["kept"])
            await proxy.restart()
            assert await client.text("counter") == "2"
            assert proxy.invocations(["kept"]) == before
            await proxy.kill()
            assert await client.text("counter") == "3"
            assert proxy.invocations(["kept"]) == before


async def test_restarts_under_200_sessions_and_load_lose_nothing(proxy):
    names = [f"load{number}" for number in range(5)]
    async with proxy.serving(*[echo(name, timeouts={"idle": "0s"}) for name in names]):
        clients = [proxy.session(names[n % len(names)], TOKEN) for n in range(200)]
        for client in clients:
            await client.initialize()
        before = await asyncio.to_thread(proxy.invocations, names)
        assert len(before) == len(names)
        streams = [await client.listen() for client in clients[:20]]
        async with Load(clients[20:]) as load:
            for _ in range(3):
                await load.more(400)
                await proxy.restart()
            await load.more(400)
        assert load.failed == []
        for stream in streams:
            assert await stream.event() is None  # its end, and no break
            await stream.close()
        assert await asyncio.to_thread(proxy.invocations, names) == before
        for client in clients:
            assert await client.text("echo", text="there") == "there"
        closed = sum(client.closed for client in clients)
        print(f"{load.calls} calls, {closed} idle connections closed")
        for client in clients:
            await client.drop()


async def test_a_call_that_is_open_at_a_restart_is_answered(proxy):
    async with proxy.serving(echo("open")):
        async with proxy.session("open", TOKEN) as client, proxy.session("open", TOKEN) as other:
            call = asyncio.create_task(client.text("echo", text="late", delay=3))
            await eventually(lambda: seen(other))
            restart = asyncio.create_task(proxy.restart())
            assert await call == "late"
            await restart
            assert await client.text("echo", text="next") == "next"


async def test_a_call_that_does_not_end_gets_an_error_and_is_given_up_at_the_server(proxy):
    async with proxy.serving(echo("stuck", timeouts={"call": "600s"})):
        async with proxy.session("stuck", TOKEN) as client, proxy.session("stuck", TOKEN) as other:
            call = asyncio.create_task(client.send(client.call_of("wait", {"tag": "w"})))
            await eventually(lambda: seen(other))
            before = await asyncio.to_thread(proxy.invocations, ["stuck"])
            await proxy.restart()
            response = await call
            (answer,) = response.messages
            assert answer["error"]["data"]["code"] == "shutting_down"
            assert '"cancelled": ["w"]' in await other.text("state")
            assert await asyncio.to_thread(proxy.invocations, ["stuck"]) == before


async def seen(client):
    """Whether the server has a call of another client's."""
    return '"tools/call": 1' not in await client.text("state")


async def test_a_sigkill_costs_each_open_call_one_error_and_no_session(proxy):
    names = ["killed0", "killed1"]
    async with proxy.serving(*[echo(name, timeouts={"idle": "0s"}) for name in names]):
        clients = [proxy.session(names[n % 2], TOKEN) for n in range(20)]
        for client in clients:
            await client.initialize()
        before = await asyncio.to_thread(proxy.invocations, names)
        for round_ in range(4):
            tags = [f"{round_}-{n}" for n in range(len(clients))]
            calls = [
                asyncio.create_task(client.call("wait", {"tag": tag}))
                for client, tag in zip(clients, tags, strict=True)
            ]
            watcher = [proxy.session(name, TOKEN) for name in names]
            for each in watcher:
                await each.initialize()
                enough = len(clients) // 2 * (round_ + 1)
                await eventually(lambda each=each, enough=enough: waits(each, enough))
            await proxy.kill()
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(r, (OSError, EOFError)) for r in results), results
            for client in clients:
                assert await client.text("echo", text="on") == "on"
            for each in watcher:
                await each.drop()
        assert await asyncio.to_thread(proxy.invocations, names) == before
        # Answers to calls of dead proxies come late, and reach nobody.
        assert await clients[0].text("release", tag="0-0") == "released"
        for client in clients:
            await client.drop()


async def waits(client, count):
    return (await client.text("state")).count("-") >= count


CHANGED = "notifications/tools/list_changed"


async def dropped(client, ident, **arguments):
    """A call whose client has gone after the first notification, and the id of that."""
    message = client.call_of("progress", {"nonce": "n", **arguments}, ident, "token")
    stream = await client.open_stream(message)
    assert (await stream.event())["params"]["progress"] == 1
    await stream.close()
    return stream.last_id


@pytest.mark.requirement("C8", "C10", "C11")
async def test_streams_are_resumed_at_the_next_proxy(proxy):
    async with proxy.serving(echo("resumed", timeouts={"call": "600s", "idle": "0s"})):
        async with proxy.session("resumed", TOKEN) as client:
            answered = await dropped(client, 1, steps=5)
            own = await client.listen()
            for tool in ("one", "two"):
                await client.send(
                    client.call_of("list_changed", {"tool": tool}),
                    headers={"Accept": "application/json"},
                )
            ids = []
            for _ in range(2):
                await own.until(CHANGED)
                ids.append(own.last_id)
            open_still = await dropped(client, 2, steps=1, then="wait")
            own.retry = None
            await proxy.restart()
            assert await own.event() is None
            assert own.retry is not None

            again = await client.listen(after=answered)
            steps = [(await again.event())["params"]["progress"] for _ in range(4)]
            assert steps == [2, 3, 4, 5]
            assert text_of(await again.until(1)) == "n"
            given_up = await client.listen(after=open_still)
            assert (await given_up.until(2))["error"]["data"]["code"] == "shutting_down"
            mine = await client.listen(after=ids[0])
            assert (await mine.event())["method"] == CHANGED
            assert mine.last_id == ids[1]
            for stream in (own, again, given_up, mine):
                await stream.close()


@pytest.mark.requirement("C9")
async def test_after_a_kill_the_own_stream_goes_on_and_no_call_is_known(proxy):
    async with proxy.serving(echo("killed", timeouts={"idle": "0s"})):
        async with proxy.session("killed", TOKEN) as client:
            answered = await dropped(client, 1, steps=2)
            own = await client.listen()
            first = await own.first_id()
            await own.close()
            await proxy.kill()
            assert await client.text("echo", text="on") == "on"
            unknown = await client.listen(after=answered)
            assert unknown.status == 400
            again = await client.listen(after=first)
            assert again.status == 200
            await client.send(
                client.call_of("list_changed", {"tool": "x"}),
                headers={"Accept": "application/json"},
            )
            assert (await again.event())["method"] == CHANGED
            await unknown.close()
            await again.close()


async def test_only_the_invocation_that_was_left_is_adopted(proxy):
    names = ["stays", "again", "ended"]
    async with proxy.serving(*[echo(name, timeouts={"idle": "0s"}) for name in names]):
        clients = {name: proxy.session(name, TOKEN) for name in names}
        for client in clients.values():
            await client.initialize()
            assert await client.text("counter") == "1"
        before = proxy.invocations(names)
        assert proxy.stored == 7  # two of each, and the state
        async with proxy.away():
            await proxy.run("systemctl", "restart", "autobot-mcp-bridge@again.service")
            await proxy.run("systemctl", "stop", "autobot-mcp-bridge@ended.service")
            other = proxy.invocations(names)
            assert other["again"] != before["again"]
        # Started by hand: it is initialized although nobody calls.
        await eventually(lambda: proxy.stored == 5, within=10)
        counts = {name: await client.text("counter") for name, client in clients.items()}
        assert counts == {"stays": "2", "again": "1", "ended": "1"}
        now = proxy.invocations(names)
        assert (now["stays"], now["again"]) == (before["stays"], other["again"])
        await eventually(lambda: proxy.stored == 7)
        for client in clients.values():
            await client.drop()


async def test_a_stop_ends_the_servers_and_a_start_begins_anew(proxy):
    names = ["polite", "deaf"]
    async with proxy.serving(echo("polite"), echo("deaf", timeouts={"stop": "200ms"})):
        clients = {name: proxy.session(name, TOKEN) for name in names}
        for client in clients.values():
            await client.initialize()
        await clients["deaf"].text("echo", text="x")
        await proxy.run("systemctl", "stop", PROXY)
        assert proxy.invocations(names) == {}
        assert proxy.stored == 0
        for client in clients.values():
            response = await client.send(client.call_of("counter", {}))
            assert response.status == 404  # the socket has started the proxy, which knows nothing
            await client.drop()


async def test_without_a_proxy_a_stop_of_its_unit_is_the_end_of_stdin(proxy):
    async with proxy.serving(echo("orphan")):
        async with proxy.session("orphan", TOKEN) as client:
            await client.text("counter")
            async with proxy.away():
                await proxy.run("systemctl", "stop", PROXY, "mcp-bridge-proxy.socket")
                await reaches(proxy.container, unit_of("orphan"), ActiveState="inactive", within=10)
                await proxy.run("rm", "-f", HOLD)
                await proxy.run("systemctl", "start", "mcp-bridge-proxy.socket", PROXY)


async def test_descriptors_stay_as_many_over_many_restarts(proxy):
    names = [f"flat{number}" for number in range(4)]
    async with proxy.serving(*[echo(name, timeouts={"idle": "0s"}) for name in names]):
        clients = [proxy.session(name, TOKEN) for name in names]
        for client in clients:
            await client.initialize()

        async def figures():
            for client in clients:
                await client.text("echo", text="x")
            await eventually(lambda: proxy.stored == 9)
            return proxy.descriptors(), len(proxy.container.check("ls", "/proc/1/fd").split())

        await proxy.restart()
        first = await figures()
        for number in range(10):
            await (proxy.kill() if number % 2 else proxy.restart())
        assert await figures() == first
        for client in clients:
            await client.drop()


async def test_a_session_that_ended_or_lost_its_token_does_not_come_back(proxy):
    other = new_token()
    both = echo("tokens", tokens_sha256=[digest_of(TOKEN), digest_of(other)])
    async with proxy.serving(both):
        clients = [proxy.session("tokens", token) for token in (TOKEN, TOKEN, other)]
        for client in clients:
            await client.initialize()
        assert (await clients[1].delete()).status == 204
        async with proxy.away():
            await proxy.apply(echo("tokens"))
        assert await clients[0].text("counter") == "1"
        statuses = [(await c.send(c.call_of("counter", {}))).status for c in clients[1:]]
        assert statuses == [404, 401]
        await proxy.apply(both)
        await eventually(lambda: answers(clients[2], 404))
        for client in clients:
            await client.drop()


async def answers(client, status):
    return (await client.send(client.call_of("counter", {}))).status == status


async def test_subscriptions_and_levels_live_on(proxy):
    uri = "file:///one"
    async with proxy.serving(echo("subs", timeouts={"idle": "0s"})):
        async with proxy.session("subs", TOKEN) as client:
            await client.request("resources/subscribe", {"uri": uri})
            await client.request("logging/setLevel", {"level": "error"})
            await proxy.kill()
            stream = await client.listen()
            await client.text("log", data="not for an error level")
            call = await client.send(client.call_of("touch", {"uri": uri}))
            messages = [m.get("method") for m in call.messages]
            if "notifications/resources/updated" not in messages:
                assert await stream.until("notifications/resources/updated")
            await proxy.run("systemctl", "kill", "--signal=KILL", "autobot-mcp-bridge@subs.service")

            async def restored():
                answer = await client.call("state")  # the call may meet the kill
                return "result" in answer and uri in text_of(answer)

            await eventually(restored, within=10)
            await stream.close()


@pytest.mark.parametrize("way", ["restart", "kill"])
async def test_a_modern_process_listens_once_and_tells_each_change_once(proxy, way):
    uri = "file:///one"
    command = ["/usr/bin/python3", f"{SERVERS}/modern.py"]
    async with proxy.serving(echo("listen", command=command, timeouts={"idle": "0s"})):
        async with proxy.session("listen", TOKEN) as client:
            await client.request("resources/subscribe", {"uri": uri})
            for _ in range(3):
                await (proxy.restart() if way == "restart" else proxy.kill())
                call = await client.send(client.call_of("touch", {"uri": uri}))
                assert "error" not in call.messages[-1], call.messages
                told = [m for m in call.messages if m.get("method") == UPDATED]
                assert len(told) <= 1, told

            async def listens_once():
                # A request of before is over once it has told something that ours has told, too.
                await client.text("touch", uri=uri)
                return len(json.loads(await client.text("listening"))["listening"]) == 1

            await eventually(listens_once, within=10)


async def test_an_operators_stop_outlives_the_proxy(proxy):
    async with proxy.serving(echo("held")):
        async with proxy.session("held", TOKEN) as client:
            await proxy.run("systemctl", "stop", unit_of("held"))
            await eventually(lambda: refused(client))
            await proxy.restart()
            assert await refused(client)
            await proxy.kill()
            assert await refused(client)
            await proxy.run("systemctl", "start", unit_of("held"))
            await eventually(lambda: works(client))


async def refused(client):
    answer = await client.call("counter")
    return answer.get("error", {}).get("data", {}).get("code") == "stopped_by_operator"


async def works(client):
    answer = await client.call("counter")
    return "result" in answer and text_of(answer)


async def test_what_waited_for_a_reader_is_read_after_a_restart(proxy):
    async with proxy.serving(echo("late", timeouts={"idle": "0s"})):
        async with proxy.session("late", TOKEN) as reader, proxy.session("late", TOKEN) as other:
            method = "notifications/resources/list_changed"
            await other.text("custom", method=method, params={"n": "über"})
            await proxy.restart()
            stream = await reader.listen()
            assert (await stream.until(method))["params"] == {"n": "über"}
            await stream.close()
            await proxy.restart()
            stream = await reader.listen()
            await other.text("custom", method=method, params={"n": 2})
            assert (await stream.until(method))["params"] == {"n": 2}
            await stream.close()


async def test_an_open_breaker_outlives_the_proxy(proxy):
    async with proxy.serving(echo("broken", breaker={"crashes": 1, "window": "600s"})):
        async with proxy.session("broken", TOKEN) as client:
            for _ in range(2):
                assert "error" in await client.call("crash", {"status": 7})
            for end in (proxy.restart, proxy.kill):
                await end()
                answer = await client.call("counter")
                assert answer["error"]["data"]["code"] == "breaker_open"


async def test_a_definition_that_changed_meanwhile_is_put_to_use_and_its_sessions_hear_of_it(proxy):
    old = echo("changed")
    async with proxy.serving(old):
        async with proxy.session("changed", TOKEN) as client:
            assert "more" not in await client.tools()
            before = proxy.invocations(["changed"])
            async with proxy.away():
                await proxy.apply({**old, "command": [*old["command"], "--tools", "more"]})
            stream = await client.listen()
            await stream.until("notifications/tools/list_changed")
            await stream.close()
            assert "more" in await client.tools()
            now = proxy.invocations(["changed"])
            assert now
            assert now != before


async def test_a_server_that_is_served_no_more_ends(proxy):
    async with proxy.serving(echo("removed"), echo("stays")):
        clients = [proxy.session(name, TOKEN) for name in ("removed", "stays")]
        for client in clients:
            await client.initialize()
            await client.drop()
        async with proxy.away():
            await proxy.forget("removed")
        await reaches(proxy.container, unit_of("removed"), ActiveState="inactive", within=10)
        assert proxy.invocations(["stays"])
        await eventually(lambda: proxy.stored == 3)


# Files, since the ends of its own pipes would be let go of with it.
FILL = """
import os, socket
got = int(os.environ.get("LISTEN_FDS", "0"))
with open("/run/filled.new", "w") as file:
    file.write(str(got))
os.rename("/run/filled.new", "/run/filled")
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.connect(os.environ["NOTIFY_SOCKET"])
for number in range(0 if got else MOST):
    held = os.memfd_create("x")
    socket.send_fds(notify, [b"FDSTORE=1\\nFDNAME=%032x" % (number // 2)], [held])
    os.close(held)
notify.send(b"READY=1")
import signal
signal.pause()
"""


async def test_as_many_descriptors_as_the_unit_allows_come_back_with_names_of_that_length(proxy):
    names = ("FileDescriptorStoreMax", "LimitNOFILE", "LimitNOFILESoft")
    settings = properties(proxy.container, PROXY, *names)
    most = settings[names[0]]
    limit = f"LimitNOFILE={settings.pop('LimitNOFILESoft')}:{settings.pop('LimitNOFILE')}"
    unit = "lab-fill.service"
    proxy.container.write("/opt/fill.py", FILL.replace("MOST", most))
    words = ["Type=notify", "Restart=always", "RestartSec=100ms", f"{names[0]}={most}", limit]
    words = ["systemd-run", f"--unit={unit}", *(f"--property={each}" for each in words)]
    try:
        proxy.container.check(*words, "--", "/usr/bin/python3", "/opt/fill.py", timeout=60)
        assert filled(proxy) == "0"
        await eventually(lambda: stored_by(proxy, unit) == most, within=20)
        await proxy.run("systemctl", "kill", "--signal=KILL", unit)
        await eventually(lambda: filled(proxy) == most, within=20)
    finally:
        print(proxy.container.run("journalctl", f"--unit={unit}", "--no-pager", "-n20").out)
        proxy.container.run("systemctl", "stop", unit)


def stored_by(proxy, unit):
    return properties(proxy.container, unit, "NFileDescriptorStore")["NFileDescriptorStore"]


def filled(proxy):
    return proxy.container.check("cat", "/run/filled")
