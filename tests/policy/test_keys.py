"""API keys at the MCP endpoints: what they open, whose sessions are, and when they end."""

import asyncio
import json
import sys
import time

import pytest
import pytest_asyncio

from autobot_mcp_bridge.model.agents import Role
from support.bridge import Bridge, new_token
from support.client import answer_to
from support.fakes import echo
from support.keys import client, get, made, store, untouched
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

FILES, WEB, RIVAL = "acme.files", "acme.web.files", "rival.files"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    servers = [
        echo("files", tenant="acme"),
        echo("files", tenant="acme", project="web"),
        echo("files", tenant="acme", project="shop"),
        echo("files", tenant="rival"),
        echo("plain"),
    ]
    async with Bridge(servers) as running:
        yield running


async def status(bridge, instance, key, **options):
    """The HTTP status of a call with this key."""
    async with client(bridge, instance, key, modern=True, **options) as caller:
        response = await caller.send(caller.call_of("pid", {}))
    return response.status


@pytest.mark.requirement("NV-24")
@pytest.mark.parametrize("shows", ["bearer", "header", "beside"])
@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
async def test_a_key_opens_the_servers_of_its_tenant_and_project(bridge, shows, modern):
    key, _ = await made(bridge, "acme", "web")

    for instance in (FILES, WEB):
        async with client(bridge, instance, key, shows=shows, modern=modern) as caller:
            assert await caller.text("echo", text=instance) == instance


@pytest.mark.parametrize("shows", ["bearer", "header", "beside"])
async def test_another_tenants_key_is_a_strangers(bridge, shows):
    key, _ = await made(bridge, "rival")

    async with untouched(bridge, FILES):
        assert await status(bridge, FILES, key, shows=shows) == 401
        assert await status(bridge, FILES, new_token(), shows=shows) == 401
    assert await status(bridge, RIVAL, key, shows=shows) == 200


async def test_a_key_of_the_tenant_default_opens_its_servers(bridge):
    key, _ = await made(bridge, "default")

    assert await status(bridge, "plain", key) == 200
    assert await status(bridge, FILES, key) == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer {key}", "X-API-Key": "{key}"},
        {"Authorization": "Bearer {key}", "X-API-Key": "{more}"},
        {"Authorization": "Bearer {token}", "X-API-Key": "{token}"},
        {"Authorization": "Bearer {token}", "X-API-Key": "mcpk_wrong"},
        {"Authorization": "Bearer {token}", "X-API-Key": ""},
        {"Authorization": "Bearer {other}", "X-API-Key": "{key}"},
        {"Authorization": "Bearer mcpb_wrong", "X-API-Key": "{key}"},
        {"Authorization": "Basic dXNlcjpwYXNz", "X-API-Key": "{key}"},
        {"Authorization": "Bearer {token}", "X-API-Key": "{foreign}"},
        {"X-API-Key": "{token}"},
        {"X-API-Key": "Bearer {key}"},
    ],
    ids=str,
)
async def test_what_does_not_go_together_is_one_401(bridge, headers):
    key, _ = await made(bridge, "acme")
    more, _ = await made(bridge, "acme")
    foreign, _ = await made(bridge, "rival")
    words = {
        "key": key,
        "more": more,
        "foreign": foreign,
        "token": bridge.token(FILES),
        "other": bridge.token(WEB),
    }
    sent = {name: value.format(**words) for name, value in headers.items()}

    async with bridge.modern(FILES) as asking:
        plain = await asking.send(
            asking.call_of("pid", {}), headers={"Authorization": "Bearer mcpb_wrong"}
        )
        response = await asking.send(
            asking.call_of("pid", {}), headers={"Authorization": None, **sent}
        )

    assert response.status == 401
    assert response.comparable == plain.comparable


async def test_a_key_at_a_server_that_is_not_there_is_told_so_in_its_own_tenant_only(bridge):
    key, _ = await made(bridge, "acme")
    async with client(bridge, FILES, key, modern=True) as caller:
        message = caller.call_of("pid", {})
        own = await caller.send(message, target="/t/acme/s/nobody/mcp")
        malformed = await caller.send(message, target="/t/acme/nothing")
        foreign = await caller.send(message, target="/t/rival/s/nobody/mcp")
        existing = await caller.send(message, target="/t/rival/s/files/mcp")

    assert (own.status, malformed.status) == (404, 404)
    assert foreign.status == 401
    assert foreign.comparable == existing.comparable


# ---- sessions ----


@pytest.mark.parametrize("shows", ["bearer", "beside"])
async def test_a_session_belongs_to_the_key_that_made_it(bridge, shows):
    mine, _ = await made(bridge, "acme", agent="a1")
    others, _ = await made(bridge, "acme", agent="a2")

    async with client(bridge, FILES, mine, shows=shows) as session:
        for intruder in (
            client(bridge, FILES, others, shows=shows, opened=False),
            bridge.session(FILES, opened=False),
        ):
            async with intruder:
                intruder.session, intruder.version = session.session, session.version
                message = intruder.call_of("echo", {})
                assert (await intruder.send(message)).status == 404
                assert (await intruder.delete()).status == 404
                assert (await intruder.send(method="GET")).status == 404
        assert await session.text("echo", text="mine") == "mine"


async def test_a_session_is_unknown_when_its_key_calls_from_another_project(bridge):
    key, _ = await made(bridge, "acme")

    async with client(bridge, FILES, key, project="web") as session:
        session.project = "shop"
        assert (await session.send(session.call_of("echo", {}))).status == 404
        session.project = "web"
        assert await session.text("echo", text="back") == "back"


async def test_an_isolated_process_is_one_principals_in_one_project():
    async with Bridge([echo("own", tenant="acme", sessions="isolated")]) as running:
        one, _ = await made(running, "acme")
        two, _ = await made(running, "acme")
        pids = {}
        for key, project in ((one, "web"), (one, "shop"), (two, "web")):
            async with client(running, "acme.own", key, project=project, modern=True) as caller:
                pids[key, project] = await caller.text("pid")
                assert await caller.text("pid") == pids[key, project]
        assert len(set(pids.values())) == 3


async def test_a_session_goes_on_with_the_rotated_key_and_outlives_the_old_one(bridge):
    old, record = await made(bridge, "acme")

    async with client(bridge, FILES, old) as session:
        new, same = store(bridge).rotate("acme", record.id, overlap=3600)
        await bridge.reload()
        assert same.id == record.id
        assert await session.text("echo", text="old") == "old"
        session.key = new
        assert await session.text("echo", text="new") == "new"
        store(bridge).rotate("acme", record.id, overlap=0)
        await bridge.reload()
        session.key = old
        assert (await session.send(session.call_of("echo", {}))).status == 401


async def test_a_rotation_without_overlap_ends_the_old_secret_and_its_session(bridge):
    old, record = await made(bridge, "acme")

    async with client(bridge, FILES, old) as session:
        new, _ = store(bridge).rotate("acme", record.id, overlap=0)
        await bridge.reload()
        assert (await session.send(session.call_of("echo", {}))).status == 401
        session.key = new
        assert (await session.send(session.call_of("echo", {}))).status == 404  # it ended with it


# ---- the end of a key ----


async def test_a_revocation_counts_without_a_word_to_the_proxy_and_ends_streams(bridge):
    key, record = await made(bridge, "acme")

    async with client(bridge, FILES, key) as session:
        stream = await session.listen()
        waiting = session.call_of("wait", {"tag": record.id})
        open_call = asyncio.create_task(session.send(waiting))
        await in_flight(bridge, record.id)
        store(bridge).revoke("acme", record.id)

        async def refused():
            return (await session.send(session.call_of("pid", {}))).status == 401

        await eventually(refused)
        assert await stream.event() is None
        error = answer_to(await open_call, waiting["id"])["error"]
        assert error["data"]["code"] == "cancelled"
        await stream.close()


async def in_flight(bridge, tag):
    async with bridge.modern(FILES) as asking:

        async def there():
            return tag in json.loads(await asking.text("state"))["waiting"]

        await eventually(there)


async def test_a_session_of_a_token_and_a_key_ends_with_either(bridge):
    token = await bridge.more_token(FILES)
    for end in ("token", "key"):
        key, record = await made(bridge, "acme")
        session = client(bridge, FILES, key, shows="beside", opened=False)
        session.token = token
        async with session:
            await session.initialize()
            stream = await session.listen()
            if end == "key":
                store(bridge).revoke("acme", record.id)
                await bridge.reload()
            else:
                bridge.servers[0]["tokens_sha256"] = []
                bridge.write(bridge.servers)
                await bridge.reload()
            assert await stream.event() is None
            assert (await session.send(session.call_of("pid", {}))).status == 401
            await stream.close()
        token = await bridge.more_token(FILES) if end == "token" else token


async def test_an_expired_key_does_not_count(bridge):
    key, _ = await made(bridge, "acme", expires=time.time() - 1)
    fresh, _ = await made(bridge, "acme", expires=time.time() + 3600)

    assert await status(bridge, FILES, key) == 401
    assert await status(bridge, FILES, fresh) == 200


async def test_a_broken_file_of_keys_shuts_out_its_own_tenant_only(bridge):
    acme, _ = await made(bridge, "acme")
    rival, _ = await made(bridge, "rival")
    path = bridge.state_dir / "keys.d" / "acme.json"
    before = path.read_bytes()
    path.write_bytes(b"{")
    try:
        await bridge.reload()
        assert await status(bridge, FILES, acme) == 401
        assert await status(bridge, RIVAL, rival) == 200
        assert str(path) in str((await bridge.status())["problems"])
    finally:
        path.write_bytes(before)
        await bridge.reload()
    assert await status(bridge, FILES, acme) == 200


# ---- the command line, the log, the last use ----


async def command_line(bridge, *words):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "autobot_mcp_bridge.cli.main", *bridge.options, *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin", "HOME": str(bridge.root)},
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode().strip()


async def test_a_key_of_the_command_line_opens_until_it_is_revoked(bridge):
    words = ("--agent-id", "a7", "--agent-type", "coder", "--json")
    shown = json.loads(await command_line(bridge, "key", "new", "acme", *words))
    await eventually(lambda: _is(bridge, shown["key"], 200))

    await command_line(bridge, "key", "revoke", "acme", shown["id"])

    await eventually(lambda: _is(bridge, shown["key"], 401))


async def _is(bridge, key, wanted):
    return await status(bridge, FILES, key) == wanted


async def test_the_last_use_is_written_when_the_proxy_ends_and_outlives_it():
    async with Bridge([echo("files", tenant="acme")]) as bridge:
        used, used_record = await made(bridge, "acme")
        _, unused_record = await made(bridge, "acme")
        before = int(time.time())
        assert await status(bridge, FILES, used) == 200
        await bridge.stop()

        async def uses():
            keys = json.loads(await command_line(bridge, "key", "list", "acme", "--json"))["keys"]
            return {key["id"]: key["used"] for key in keys}

        first = await uses()
        await bridge.start()
        await bridge.stop()

        assert first[unused_record.id] is None
        assert first[used_record.id] is not None
        assert await uses() == first
        text = (bridge.state_dir / "used.d" / "keys.json").read_text(encoding="utf-8")
        assert before <= json.loads(text)["acme"][used_record.id] <= time.time()


@pytest.mark.requirement("NV-30")
async def test_no_key_stands_in_the_log_or_the_state(bridge):
    key, record = await made(bridge, "acme", "web", roles=[Role.TENANT_ADMIN])
    assert await status(bridge, WEB, key) == 200
    await get(bridge, "/v1/servers/acme.shop.files", key)
    await get(bridge, "/v1/servers", key[:-1])

    texts = [bridge.log().encode()]
    texts += [path.read_bytes() for path in bridge.state_dir.rglob("*") if path.is_file()]
    assert record.id.encode() in texts[0]  # what was refused names the key, by its id
    for secret in (key, key[:-1], key.removeprefix("mcpk_")):
        assert all(secret.encode() not in text for text in texts)
    digest_at = [text for text in texts if record.sha256.encode() in text]
    assert len(digest_at) == 1  # keys.d, and nowhere else
