"""The clients' port by TLS: what is served, and a certificate that is renewed under its clients."""

import asyncio
import json
import os
import signal
import ssl
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from autobot_mcp_bridge.cli.exchange import call_tool
from autobot_mcp_bridge.config.errors import UnavailableError
from clients import drivers
from support import proc
from support.authority import Authority
from support.bridge import Bridge
from support.client import text_of
from support.fakes import echo
from support.waiting import eventually
from support.wire import Connection, raw_exchange

STREAMS = 200
RENEWALS = 3
CALLERS = 4
CAP = 32  # MiB


class Pair:
    """A certificate and its key as files, and an authority that makes further ones."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        self.certificate, self.key = folder / "fullchain.pem", folder / "privkey.pem"
        self.der = self.renew()

    def renew(self, **options) -> bytes:
        self.der = self.authority.renew(self.certificate, self.key, **options)
        return self.der

    def bridge(self, *servers, **options) -> Bridge:
        table = {"certificate": str(self.certificate), "key": str(self.key)}
        options["host"] = {"tls": table, **options.get("host", {})}
        made = Bridge(servers or [echo("files")], **options)
        made.trusts = self.authority.client()
        return made


@pytest.fixture
def pair(tmp_path):
    return Pair(tmp_path)


async def shown(bridge: Bridge) -> bytes:
    """The certificate that a new connection sees."""
    connection = await Connection.open(bridge.base, tls=bridge.trusts)
    try:
        return connection.certificate
    finally:
        await connection.close()


async def shows(bridge: Bridge, der: bytes) -> None:
    async def so() -> bool:
        return await shown(bridge) == der

    await eventually(so, within=20, what="the new certificate is in force")


def told(bridge: Bridge, word: str) -> list[str]:
    return [line for line in bridge.log().splitlines() if word in line]


async def test_a_renewal_under_load_loses_no_stream_and_fails_no_call(pair, record_property):
    async with pair.bridge() as bridge, AsyncExitStack() as stack:
        sessions = [
            await stack.enter_async_context(bridge.session("files")) for _ in range(STREAMS)
        ]
        streams = [await session.listen() for session in sessions]
        done, calls, failed = asyncio.Event(), 0, 0

        async def call(number: int) -> None:
            nonlocal calls, failed
            async with bridge.modern("files") as client:
                while not done.is_set():
                    if calls % 5 == 0:
                        await client.drop()  # and the next one makes a handshake
                        client._keeps = True
                    text = f"{number}-{calls}"
                    calls += 1
                    try:
                        failed += await client.text("echo", text=text) != text
                    except (OSError, AssertionError, EOFError):
                        failed += 1

        async with asyncio.TaskGroup() as group:
            for number in range(CALLERS):
                group.create_task(call(number))
            lost = set()
            for renewal in range(RENEWALS):
                await shows(bridge, pair.renew(rsa_key=renewal == 1))
                # Of a shared server's messages this is one that goes to every session.
                async with bridge.session("files") as caller:
                    await caller.text("list_changed", tool=f"more-{renewal}")
                for number, stream in enumerate(streams):
                    event = await stream.event()
                    if (event or {}).get("method") != "notifications/tools/list_changed":
                        lost.add(number)
            for session in sessions:
                failed += await session.text("echo", text="still") != "still"
                calls += 1
            done.set()
        for stream in streams:
            await stream.close()
        record_property("lost_streams", len(lost))
        record_property("failed_calls", failed)
        record_property("calls", calls)
        assert (lost, failed) == (set(), 0)
        assert len(told(bridge, "tls: the certificate for")) == 1 + RENEWALS


async def test_connections_that_are_open_keep_the_certificate_that_they_began_with(pair):
    first = pair.der
    async with pair.bridge() as bridge, bridge.session("files") as session:
        before = await session.take_connection()
        await shows(bridge, pair.renew())

        assert before.certificate == first
        answer = await before.request("GET", "/healthz")
        assert answer.status == 200
        await before.close()


async def test_an_rsa_certificate_does_not_outlive_its_successor_of_another_kind(pair):
    pair.renew(rsa_key=True)
    async with pair.bridge() as bridge:
        assert await shown(bridge) == pair.der
        await shows(bridge, pair.renew())
        context = pair.authority.client()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await Connection.open(bridge.base, tls=context)


def other_key(pair: Pair) -> None:
    pair.authority.renew(pair.certificate)


def half(pair: Pair) -> None:
    pair.authority.renew(pair.certificate, pair.key)
    pair.certificate.write_bytes(pair.certificate.read_bytes()[:400])


def half_chain(pair: Pair) -> None:
    pair.authority.renew(pair.certificate, pair.key)
    pair.certificate.write_bytes(pair.certificate.read_bytes()[:-100])


def expired(pair: Pair) -> None:
    pair.authority.renew(pair.certificate, pair.key, days=-1)


def gone(pair: Pair) -> None:
    pair.key.unlink()


def open_to_all(pair: Pair) -> None:
    pair.authority.renew(pair.certificate, pair.key)
    pair.key.chmod(0o644)


BROKEN = {
    other_key: "the key is not the certificate's",
    half: "there is no certificate in it",
    half_chain: "no certificate and key in PEM form",
    expired: "certificate has expired",
    gone: "privkey.pem: no such file",
    open_to_all: "privkey.pem: others may read the key; chmod o-rwx",
}


@pytest.mark.parametrize("spoil", BROKEN, ids=lambda spoil: spoil.__name__)
async def test_a_pair_that_cannot_be_used_is_kept_out_and_the_one_before_stays(pair, spoil):
    good = pair.der
    async with pair.bridge() as bridge:
        assert await bridge.metric("mcp_bridge_tls_ok") == 1
        spoil(pair)
        await eventually(lambda: told(bridge, BROKEN[spoil]), within=20)

        assert await shown(bridge) == good
        assert told(bridge, "the one before stays in force")
        assert await bridge.metric("mcp_bridge_tls_ok") == 0
        assert (await bridge.health(operator=True)).status == 200

        await shows(bridge, pair.renew())
        assert await bridge.metric("mcp_bridge_tls_ok") == 1
    assert "BEGIN" not in bridge.log()


@pytest.mark.parametrize("spoil", BROKEN, ids=lambda spoil: spoil.__name__)
async def test_a_proxy_does_not_begin_with_a_pair_that_cannot_be_used(pair, spoil):
    spoil(pair)
    bridge = pair.bridge()
    with pytest.raises(AssertionError, match="the proxy ended at once") as said:
        await bridge.__aenter__()
    assert f"host.toml: $.tls: {pair.certificate.parent}" in str(said.value) or BROKEN[
        spoil
    ] in str(said.value)
    assert bridge.process is not None and bridge.process.returncode == 65


async def test_hup_and_a_renewal_end_no_connection_and_the_expiry_is_a_metric(pair):
    async with pair.bridge() as bridge, bridge.session("files") as session:
        assert bridge.process is not None
        soon = await bridge.metric("mcp_bridge_tls_expires_timestamp_seconds")
        kept = await session.take_connection()
        pair.renew(days=30)
        bridge.process.send_signal(signal.SIGHUP)
        await shows(bridge, pair.der)

        assert (await kept.request("GET", "/healthz")).status == 200
        await kept.close()
        later = await bridge.metric("mcp_bridge_tls_expires_timestamp_seconds")
        assert round((later - soon) / 86400) == 29


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_tls_1_2_and_1_3_are_served(pair, version):
    context = pair.authority.client()
    context.minimum_version = context.maximum_version = version
    async with pair.bridge() as bridge:
        bridge.trusts = context
        async with bridge.modern("files") as client:
            assert await client.text("echo", text="here") == "here"
        connection = await Connection.open(bridge.base, tls=context)
        assert connection.tls_version == version.name.replace("_", ".")
        await connection.close()


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_tls_1_1_is_refused(pair):
    context = pair.authority.client()
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    async with pair.bridge() as bridge:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await Connection.open(bridge.base, tls=context)
        assert await shown(bridge) == pair.der


async def test_http_1_1_is_what_is_agreed_on_whatever_else_a_client_offers(pair):
    context = pair.authority.client()
    context.set_alpn_protocols(["h2", "http/1.1"])
    async with pair.bridge() as bridge:
        connection = await Connection.open(bridge.base, tls=context)
        assert connection.protocol == "http/1.1"
        assert (await connection.request("GET", "/healthz")).status == 200
        await connection.close()


async def test_plain_http_on_the_port_is_told_what_it_speaks_and_fills_no_log(pair):
    async with pair.bridge() as bridge:
        plain = bridge.base.replace("https:", "http:")
        answer = await raw_exchange(plain, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.endswith(b"this port speaks HTTPS, not HTTP\n")
        assert await raw_exchange(plain, b"\x00\x01nonsense\r\n\r\n") == b""
        assert "handshake" not in bridge.log()
        assert await shown(bridge) == pair.der


async def test_slow_handshakes_hold_no_place_of_others_and_end_in_time(pair):
    async with pair.bridge(host={"limits": {"connections": 8}}) as bridge:
        plain = bridge.base.replace("https:", "http:")
        async with bridge.session("files") as session:
            assert await session.text("echo", text="a") == "a"
            stream = await session.listen()
            slow = [await Connection.open(plain) for _ in range(30)]
            for connection in slow:
                connection.send(b"\x16\x03\x01")  # a handshake that never goes on
            # Each new one took the place of the oldest that was slow, and of nobody else.
            assert await slow[0].rest() == b""
            assert await shown(bridge) == pair.der
            async with bridge.session("files") as caller:
                await caller.text("list_changed", tool="more")
            assert await stream.event() is not None
            assert await slow[-1].rest(within=30) == b""
            for connection in slow:
                await connection.close()
            await stream.close()


async def test_a_result_of_20_mib_costs_at_most_four_times_its_cap_by_tls(pair):
    wide = echo("files", caps={"line": f"{CAP}M"})
    async with pair.bridge(wide) as bridge, bridge.session("files") as session:
        await session.text("pid")
        base = proc.rss(bridge.pid)
        proc.forget_peak(bridge.pid)
        answer = await session.call("echo", {"size": 20 << 20}, within=60)
        assert text_of(answer) == "x" * (20 << 20)
        assert proc.peak(bridge.pid) - base <= 4 * (CAP << 20)


async def test_answers_that_nobody_reads_are_bounded_by_tls_too(pair):
    async with pair.bridge(echo("files", caps={"line": "16M"})) as bridge:
        async with bridge.modern("files") as client:
            message = client.call_of("echo", {"size": 8 << 20}, 1)
            client.deaf = True
            streams = []
            for _ in range(34):  # of 8 MiB each, of which the kernel takes 3; 128 MiB may wait
                stream = await client.open_stream(message, headers={"Accept": "application/json"})
                streams.append(stream)
            statuses = [stream.status for stream in streams]
            assert statuses[:8] == [200] * 8
            assert 503 in statuses[8:]
            for stream in streams:
                stream.reset()
            client.deaf = False
            assert await client.text("echo", text="next") == "next"


async def test_a_client_that_takes_nothing_of_its_answer_is_dropped_by_tls_too(pair):
    limits = {"write_timeout": "1s"}
    async with pair.bridge(host={"limits": limits}) as bridge:
        async with bridge.modern("files") as client:
            await client.text("pid")
            before = proc.descriptors(bridge.pid)
            client.deaf = True
            message = client.call_of("echo", {"size": 3 << 20}, 1)
            deaf = await client.open_stream(message, headers={"Accept": "application/json"})
            assert proc.descriptors(bridge.pid) > before
            await eventually(lambda: proc.descriptors(bridge.pid) <= before, within=20)
            deaf.reset()


@pytest.mark.clients
@pytest.mark.parametrize("kind", ["python", "node"])
async def test_the_official_clients_come_by_a_private_authority_and_not_without_it(
    pair, kind, need, tmp_path_factory
):
    if kind == "node":
        need("clients")

    def drive(folder: Path):
        if kind == "python":
            return drivers.python_mcp(target, "auto", folder)
        return drivers.node_script("ts_v1.mjs", target, "legacy", folder)

    async with pair.bridge() as bridge:
        target = drivers.Target(
            bridge.url("files"), bridge.token("files"), "echo", {"text": "across"}
        )
        seen = await drive(pair.certificate.parent)
        assert "across" in seen.text
        with pytest.raises(drivers.ClientError):
            await drive(tmp_path_factory.mktemp("stranger"))


async def cli(bridge: Bridge, *words: str, **environ: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "autobot_mcp_bridge.cli.main", *words, *bridge.options),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **environ},
    )
    async with asyncio.timeout(60):
        out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()


async def test_the_command_line_calls_its_own_proxy_by_tls_before_and_after_a_renewal(pair):
    async with pair.bridge() as bridge:
        words = ("call", "files", "echo", '{"text": "by hand"}')
        token = {"MCP_BRIDGE_TOKEN": bridge.token("files")}
        assert await cli(bridge, *words, **token) == (0, "by hand\n")
        await shows(bridge, pair.renew())
        assert await cli(bridge, *words, **token) == (0, "by hand\n")
        listed = json.loads((await cli(bridge, "list", "--json"))[1])
        assert listed["url"] == bridge.base


async def test_a_stranger_at_the_proxys_address_is_sent_no_token(pair):
    async with pair.bridge() as bridge:
        with pytest.raises(UnavailableError, match="not the proxy's"):
            await asyncio.to_thread(
                call_tool,
                bridge.url("files"),
                "mcpb_secret",
                "echo",
                {},
                20.0,
                lambda _shown: False,
            )
        assert " POST " not in bridge.log()


async def test_check_says_how_long_the_certificate_counts_and_why_it_does_not(pair):
    pair.renew(days=60.5)
    async with pair.bridge() as bridge:
        status, said = await cli(bridge, "check")
        assert status == 0
        assert "tls: the certificate for localhost, 127.0.0.1 counts for 60 days more" in said
        expired(pair)
        status, said = await cli(bridge, "check")
        assert (status, "certificate has expired" in said) == (65, True)


async def test_an_address_beyond_loopback_needs_no_word_with_tls(pair):
    host = {"listen": {"address": "0.0.0.0"}, "http": {"allowed_hosts": ["127.0.0.1"]}}
    async with pair.bridge(host=host) as bridge:
        assert bridge.base.startswith("https://127.0.0.1:")
        async with bridge.modern("files") as client:
            assert await client.text("echo", text="here") == "here"
