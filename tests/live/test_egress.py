"""The egress proxy, a process on this machine's loopback: what it carries, and what it does not."""

import asyncio
import os
import socket
import ssl
import struct

import pytest

from support.authority import Authority
from support.egress import Egress, client_hello, close
from support.proc import descriptors, rss, sockets
from support.waiting import PATIENCE, WITHIN, eventually

LISTED, OTHER = "api.example.com", "other.example.com"
HELLO = client_hello(LISTED)
ALERT = b"\x15\x03\x03\x00\x02\x02"  # fatal


class Host:
    """A listed host, which is told nothing but bytes."""

    def __init__(self, address="127.0.0.2"):
        self.address = address
        self.streams = asyncio.Queue()
        self.writers = []

    async def __aenter__(self):
        self._server = await asyncio.start_server(self.take, self.address, 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()
        await close(*self.writers)

    def take(self, *streams):
        self.streams.put_nowait(streams)
        self.writers.append(streams[1])

    async def next(self):
        async with asyncio.timeout(WITHIN * PATIENCE):
            return await self.streams.get()


@pytest.fixture
async def host():
    async with Host() as made:
        yield made


def egress(tmp_path, host, names=None, allow=None, **limits):
    entries = allow if allow is not None else [f"{LISTED}:{host.port}"]
    return Egress(tmp_path, {"files": entries}, names or {LISTED: [["127.0.0.2"]]}, **limits)


@pytest.fixture
async def proxy(tmp_path, host):
    async with egress(tmp_path, host) as made:
        made.hand("files")
        yield made


async def opened(proxy, host, instance="files", hello=HELLO):
    """A connection that is carried: the client's side of it, and the host's."""
    asked = await proxy.connect(instance, f"{LISTED}:{host.port}")
    assert asked.status == 200
    asked.writer.write(hello)
    reader, writer = await host.next()
    async with asyncio.timeout(WITHIN * PATIENCE):
        assert await reader.readexactly(len(hello)) == hello
    return asked, reader, writer


async def test_a_listed_host_is_reached_by_tls_and_its_certificate_is_its_own(tmp_path):
    authority = Authority(tmp_path)

    async def answer(reader, writer):
        writer.write(b"hello " + await reader.readline())
        await writer.drain()
        await close(writer)

    server = await asyncio.start_server(answer, "127.0.0.2", 0, ssl=authority.server(LISTED))
    port = server.sockets[0].getsockname()[1]
    proxy = Egress(tmp_path, {"files": [f"{LISTED}:{port}"]}, {LISTED: [["127.0.0.2"]]})
    async with server, proxy:
        proxy.hand("files")
        asked = await proxy.connect("files", f"{LISTED}:{port}")
        async with asyncio.timeout(WITHIN * PATIENCE):
            await asked.writer.start_tls(authority.client(), server_hostname=LISTED)
            asked.writer.write(b"files\n")
            assert await asked.reader.read() == b"hello files\n"
        await proxy.counted("files", carried=1, open=0, refused={})
    assert proxy.log == ""


@pytest.mark.parametrize(
    ("text", "status", "word"),
    [
        (f"CONNECT {OTHER}:PORT HTTP/1.1\r\n\r\n", 403, "not_listed"),
        (f"CONNECT {LISTED}:1 HTTP/1.1\r\n\r\n", 403, "not_listed"),
        (f"CONNECT x.{LISTED}:PORT HTTP/1.1\r\n\r\n", 403, "not_listed"),
        ("CONNECT 127.0.0.2:PORT HTTP/1.1\r\n\r\n", 403, "not_listed"),
        (f"GET http://{LISTED}:PORT/ HTTP/1.1\r\nHost: {LISTED}\r\n\r\n", 405, "not_connect"),
        ("hello\r\n\r\n", 400, "bad_request"),
        (f"CONNECT {LISTED}:PORT HTTP/1.1\r\nA: {'a' * 9000}\r\n\r\n", 431, "head_too_large"),
    ],
)
async def test_a_request_for_anything_else_is_refused_logged_and_counted(
    proxy, host, text, status, word
):
    asked = await proxy.ask("files", text.replace("PORT", str(host.port)))
    assert asked.status == status
    assert (await asked.rest()).startswith(word.encode() + b": ")

    await proxy.counted("files", carried=0, refused={word: 1})
    (line,) = proxy.log.splitlines()
    assert line.startswith("files: refused")
    assert host.streams.empty()
    assert proxy.asked(OTHER) == 0


@pytest.mark.parametrize(
    ("said", "word"),
    [
        (client_hello(OTHER), "other_server_name"),
        (client_hello(None), "no_server_name"),
        (b"GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n", "not_tls"),
        (b"SSH-2.0-client\r\n", "not_tls"),
    ],
)
async def test_what_does_not_name_the_host_by_tls_never_reaches_it(proxy, host, said, word):
    answer = b"HTTP/1.1 403 not_tls" if word == "not_tls" else ALERT
    asked = await proxy.connect("files", f"{LISTED}:{host.port}")
    asked.writer.write(said)
    assert (await asked.rest()).startswith(answer)

    reader, _ = await host.next()
    assert await reader.read() == b""
    await proxy.counted("files", carried=0, refused={word: 1})
    assert "files: refused" in proxy.log


async def test_a_hello_that_comes_in_pieces_or_with_the_request_is_carried_whole(proxy, host):
    target = f"{LISTED}:{host.port}"
    together = f"CONNECT {target} HTTP/1.1\r\n\r\n".encode() + HELLO
    asked = await proxy.ask("files", together.decode("latin-1"))
    reader, _ = await host.next()
    async with asyncio.timeout(WITHIN * PATIENCE):
        assert await reader.readexactly(len(HELLO)) == HELLO

    asked = await proxy.connect("files", target)
    reader, _ = await host.next()
    for at in range(0, len(HELLO), 50):
        asked.writer.write(HELLO[at : at + 50])
        await asked.writer.drain()
    async with asyncio.timeout(WITHIN * PATIENCE):
        assert await reader.readexactly(len(HELLO)) == HELLO


@pytest.mark.parametrize(
    "answer",
    [
        *(["10.0.0.7"], ["127.0.0.1"], ["169.254.169.254"], ["fe80::1"], ["fd00:ec2::254"]),
        *(["::ffff:10.0.0.7"], ["64:ff9b::a00:7"], ["127.0.0.2", "192.168.1.1"], []),
    ],
    ids=str,
)
async def test_a_name_that_leads_to_any_address_that_is_not_public_is_refused(
    tmp_path, host, answer
):
    async with egress(tmp_path, host, {LISTED: [answer]}) as proxy:
        proxy.hand("files")
        asked = await proxy.connect("files", f"{LISTED}:{host.port}")
        body = await asked.rest()

    assert asked.status == (403 if answer else 502)
    assert not any(address.encode() in body for address in answer)
    assert all(address in proxy.log for address in answer[-1:])
    assert host.streams.empty()


async def test_a_name_that_is_rebound_is_looked_up_once_for_a_connection(tmp_path, host):
    names = {LISTED: [["127.0.0.2"], ["127.0.0.1"]]}
    async with egress(tmp_path, host, names) as proxy:
        proxy.hand("files")
        await opened(proxy, host)
        assert proxy.asked(LISTED) == 1
        again = await proxy.connect("files", f"{LISTED}:{host.port}")

    assert again.status == 403
    assert proxy.asked(LISTED) == 2


async def test_this_hosts_own_services_are_not_reached_by_an_address_of_its_own(tmp_path):
    async with Host("::1") as host, egress(tmp_path, host, {LISTED: [["::1"]]}) as proxy:
        proxy.hand("files")
        assert (await proxy.connect("files", f"{LISTED}:{host.port}")).status == 403
        assert "::1, of this host" in proxy.log


async def test_a_silent_resolver_holds_up_its_own_server_for_a_bounded_time_only(tmp_path, host):
    os.mkfifo(tmp_path / "answer")
    names = {LISTED: [["127.0.0.2"]], "slow.example.com": ["silence"]}
    entries = {"files": [f"{LISTED}:{host.port}", "slow.example.com"], "slow": ["slow.example.com"]}
    proxy = Egress(tmp_path, entries, names, resolve=0.3, lookups_per_server=2)
    async with proxy:
        proxy.hand("files")
        proxy.hand("slow")
        late = await asyncio.gather(*(proxy.connect("slow", "slow.example.com:443") for _ in "ab"))
        assert [asked.status for asked in late] == [504, 504]
        # Both threads still wait, and no more are given to this server.
        assert (await proxy.connect("slow", "slow.example.com:443")).status == 503
        asked, _, _ = await opened(proxy, host)
        asked.writer.close()
        (tmp_path / "answer").write_text("", encoding="utf-8")
        await proxy.counted("slow", refused={"resolve_timeout": 2, "too_many": 1})


@pytest.mark.parametrize(
    ("said", "word"),
    [("", "head_timeout"), (f"CONNECT {LISTED}:PORT HTTP/1.1\r\nA: ", "head_timeout")],
)
async def test_a_request_that_does_not_come_is_waited_for_in_vain(tmp_path, host, said, word):
    async with egress(tmp_path, host, head=0.2) as proxy:
        proxy.hand("files")
        asked = await proxy.ask("files", said.replace("PORT", str(host.port)))

        assert asked.status == 408
        await proxy.counted("files", refused={word: 1})


async def test_a_hello_that_does_not_come_closes_both_sides(tmp_path, host):
    async with egress(tmp_path, host, hello=0.2) as proxy:
        proxy.hand("files")
        asked = await proxy.connect("files", f"{LISTED}:{host.port}")
        asked.writer.write(HELLO[:20])
        assert (await asked.rest()).startswith(ALERT)
        assert await (await host.next())[0].read() == b""
        await proxy.counted("files", refused={"hello_timeout": 1})


async def test_a_host_that_refuses_or_is_silent_is_said_to_be_so(tmp_path, host):
    with socket.create_server(("127.0.0.2", 0), backlog=1) as full, socket.socket() as closed:
        closed.bind(("127.0.0.2", 0))
        address = full.getsockname()
        # A full backlog lets no more connections come up (listen(2)).
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        ports = (closed.getsockname()[1], address[1])
        allow = [f"{LISTED}:{port}" for port in ports]
        async with egress(tmp_path, host, allow=allow, attempt=0.5, connect=0.5) as proxy:
            proxy.hand("files")
            asked = [await proxy.connect("files", entry) for entry in allow]
        for one in waiting:
            one.close()

    assert [one.status for one in asked] == [502, 504]


async def test_the_next_address_of_a_name_is_tried(tmp_path, host):
    names = {LISTED: [["127.0.0.3", "127.0.0.2"]]}
    async with egress(tmp_path, host, names) as proxy:
        proxy.hand("files")
        await opened(proxy, host)


async def test_each_side_may_end_before_the_other(proxy, host):
    asked, reader, writer = await opened(proxy, host)
    asked.writer.write_eof()
    async with asyncio.timeout(WITHIN * PATIENCE):
        assert await reader.read() == b""
    writer.write(b"x" * 100_000)
    writer.write_eof()
    assert await asked.rest() == b"x" * 100_000
    await proxy.counted("files", open=0, carried=1)

    asked, reader, writer = await opened(proxy, host)
    writer.write_eof()
    assert await asked.rest() == b""
    asked.writer.write(b"y" * 100_000)
    asked.writer.write_eof()
    async with asyncio.timeout(WITHIN * PATIENCE):
        assert await reader.read() == b"y" * 100_000


def reset(writer):
    """End a connection as a killed process' is, with unread bytes (socket(7), SO_LINGER)."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def test_a_side_that_vanishes_takes_the_other_with_it(proxy, host):
    asked, reader, _ = await opened(proxy, host)
    reset(asked.writer)
    async with asyncio.timeout(WITHIN * PATIENCE):
        assert await reader.read() == b""

    asked, _, writer = await opened(proxy, host)
    reset(writer)
    assert await asked.rest() == b""
    await proxy.counted("files", open=0, carried=2, refused={})


@pytest.mark.parametrize("direction", ["out", "in"])
async def test_a_reader_that_does_not_read_holds_up_its_writer(proxy, host, direction):
    asked, reader, writer = await opened(proxy, host)
    source, sink = (asked.writer, reader) if direction == "out" else (writer, asked.reader)
    sink._transport.pause_reading()  # the stream itself would take 64 KiB
    before = rss(proxy.pid)
    block, written = b"z" * (1 << 16), 0

    async def write_on():
        nonlocal written
        while True:
            source.write(block)
            await source.drain()
            written += len(block)

    writing = asyncio.create_task(write_on())
    seen = -1

    def stands_still():
        nonlocal seen
        same, seen = seen == written, written
        return same and written > 0

    await eventually(stands_still, within=4 * WITHIN)
    assert rss(proxy.pid) - before < 8 << 20
    writing.cancel()
    source.transport.abort()


async def test_a_connection_on_which_nothing_moves_is_closed(tmp_path, host):
    async with egress(tmp_path, host, idle=0.5) as proxy:
        proxy.hand("files")
        asked, reader, _ = await opened(proxy, host)
        assert await asked.rest() == b""
        assert await reader.read() == b""
        await proxy.counted("files", open=0, refused={})


async def test_one_connection_too_many_is_refused_and_others_go_on(tmp_path, host):
    entries = {"files": [f"{LISTED}:{host.port}"], "web": [f"{LISTED}:{host.port}"]}
    limits = {"per_server": 2, "together": 3, "assured": 1}
    proxy = Egress(tmp_path, entries, {LISTED: [["127.0.0.2"]]}, **limits)
    async with proxy:
        proxy.hand("files")
        proxy.hand("web")
        first = [await opened(proxy, host) for _ in range(2)]
        assert (await proxy.connect("files", f"{LISTED}:{host.port}")).status == 503
        await opened(proxy, host, "web")
        assert (await proxy.connect("web", f"{LISTED}:{host.port}")).status == 503
        reset(first[0][0].writer)
        await proxy.counted("files", open=1, refused={"too_many": 1})
        await opened(proxy, host)


async def test_servers_that_hold_all_they_may_shut_out_no_other(tmp_path, host):
    names = ("greedy", "files", "web")
    entries = {name: [f"{LISTED}:{host.port}"] for name in names}
    limits = {"per_server": 2, "together": 2, "assured": 1, "most": 3}
    proxy = Egress(tmp_path, entries, {LISTED: [["127.0.0.2"]]}, **limits)
    async with proxy:
        for name in names:
            proxy.hand(name)
        for name in ("greedy", "greedy", "files"):
            await opened(proxy, host, name)
        # Of its own it has its share, and of all that there is nothing is left.
        assert (await proxy.connect("files", f"{LISTED}:{host.port}")).status == 503
        assert (await proxy.connect("web", f"{LISTED}:{host.port}")).status == 503
        assert "2 of all servers" in proxy.log
        assert "3 of all servers" in proxy.log


async def test_servers_whose_names_are_not_answered_leave_threads_to_others(tmp_path, host):
    os.mkfifo(tmp_path / "answer")
    slow = "slow.example.com"
    entries = {"files": [f"{LISTED}:{host.port}"], "one": [slow], "two": [slow]}
    limits = {"resolve": 0.3, "lookups": 4, "lookups_per_server": 2, "lookups_assured": 1}
    proxy = Egress(tmp_path, entries, {LISTED: [["127.0.0.2"]], slow: ["silence"]}, **limits)
    async with proxy:
        for name in entries:
            proxy.hand(name)
        for name, status in (("one", 504), ("one", 504), ("two", 504), ("two", 503)):
            assert (await proxy.connect(name, f"{slow}:443")).status == status
        await opened(proxy, host)
        (tmp_path / "answer").write_text("", encoding="utf-8")
        await proxy.counted("two", refused={"resolve_timeout": 1, "too_many": 1})


async def test_an_entry_that_goes_ends_its_connections_and_a_broken_file_ends_none(proxy, host):
    asked, _, _ = await opened(proxy, host)
    proxy.write("egress.json", {"version": 0})
    await eventually(lambda: "stays in force" in proxy.log)
    more, _, _ = await opened(proxy, host)

    proxy.allow({"files": [OTHER], "web": [f"{LISTED}:{host.port}"]})
    assert await asked.rest() == b""
    assert await more.rest() == b""
    assert (await proxy.connect("files", f"{LISTED}:{host.port}")).status == 403
    await proxy.counted("files", open=0, refused={"not_listed_any_more": 2, "not_listed": 1})


async def test_whose_a_connection_is_is_told_by_the_socket_it_came_in_on(tmp_path, host):
    entries = {"files": [f"{LISTED}:{host.port}"], "acme.web.files": [OTHER]}
    async with Egress(tmp_path, entries, {LISTED: [["127.0.0.2"]]}) as proxy:
        proxy.hand("files")
        proxy.hand("acme.web.files")
        head = (
            f"CONNECT {LISTED}:{host.port} HTTP/1.1\r\nProxy-Authorization: Basic ZmlsZXM6\r\n\r\n"
        )
        assert (await proxy.ask("acme.web.files", head)).status == 403
        assert (await proxy.ask("files", head)).status == 200
        await proxy.counted("acme.web.files", refused={"not_listed": 1})
        assert "acme.web.files: refused" in proxy.log


async def held(proxy, host, carried):
    """How many sockets it has while it carries nothing; so many times it has carried then."""
    asked, _, _ = await opened(proxy, host)
    reset(asked.writer)
    await proxy.counted("files", open=0, carried=carried)
    return sockets(proxy.pid)


async def test_what_was_handed_over_is_let_go_of_and_taken_anew(proxy, host):
    before = await held(proxy, host, 1)
    listener = proxy.listeners["files"]
    for _ in range(3):
        proxy.hand("files")
    assert await held(proxy, host, 2) == before

    proxy.send("release", "files", [])
    await eventually(lambda: sockets(proxy.pid) == before - 1)
    # It is ours as before: nobody has shut it down.
    with socket.create_connection(listener.getsockname()):
        pass
    proxy.hand("files")
    await opened(proxy, host)


@pytest.mark.parametrize("word", ["hand ../x", "take files", "hand", "release files more", "\xff"])
async def test_a_message_that_is_none_is_not_taken_and_holds_nothing(proxy, host, word):
    before = await held(proxy, host, 1)
    with socket.socket() as silent:  # it does not listen
        proxy.send(word, "", [proxy.listeners["files"].fileno()])
        proxy.send("hand", "files", [silent.fileno()])
        proxy.send("hand", "web", [])
    proxy.hand("files")
    assert await held(proxy, host, 2) == before
    assert "not taken" in proxy.log


async def test_what_cannot_be_listened_on_takes_no_listener_away_and_is_not_kept(proxy, host):
    await held(proxy, host, 1)
    before = descriptors(proxy.pid)
    ends = os.pipe()
    with socket.socket() as silent:
        for number in (silent.fileno(), ends[0]) * 20:
            proxy.send("hand", "files", [number])
    for end in ends:
        os.close(end)
    await eventually(lambda: proxy.log.count("not taken") == 40, what="all of them are refused")

    assert "Traceback" not in proxy.log
    await eventually(lambda: descriptors(proxy.pid) <= before, what="none of them is kept")
    assert (await proxy.connect("files", f"{LISTED}:{host.port}")).status == 200


async def test_after_a_kill_it_goes_on_with_what_it_is_handed_again_and_its_counts(proxy, host):
    await opened(proxy, host)
    await proxy.counted("files", carried=1, open=1)
    proxy.end("kill")
    waiting = asyncio.create_task(proxy.connect("files", f"{LISTED}:{host.port}"))
    await proxy.start()
    proxy.hand("files")

    assert (await waiting).status == 200
    await proxy.counted("files", carried=1, open=1)


async def test_a_flood_of_refusals_fills_no_log_and_is_counted(proxy, host):
    for _ in range(100):
        assert (await proxy.connect("files", f"{OTHER}:443")).status == 403

    await proxy.counted("files", refused={"not_listed": 100})
    assert 60 <= len(proxy.log.splitlines()) < 100


async def test_a_context_of_tls_1_2_is_carried_as_well(proxy, host):
    hello = client_hello(LISTED, maximum_version=ssl.TLSVersion.TLSv1_2)
    await opened(proxy, host, hello=hello)
