"""Which addresses a server by url may have, each denial beside what is let through.

127.0.0.2 stands for the internet, and 127.0.0.1 for what is not (tests/support/upstream_main.py);
both are listened on at one port, so that what is refused would have been answered.
"""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from support.authority import Authority
from support.byhand import ByHand
from support.far import Far

MAIN = Path(__file__).resolve().parent.parent / "support" / "upstream_main.py"
PUBLIC, PRIVATE = "127.0.0.2", "127.0.0.1"
CONFIG, PROTOCOL = 78, 76
NAME = "api.test.example"


class World:
    """The two ends, and the program before them."""

    def __init__(self, folder, names):
        self.folder = folder
        self.sni = []
        authority = Authority(folder)
        self.ca = str(authority.file)
        context = authority.server(NAME, "other.test.example")
        context.sni_callback = lambda _socket, name, _context: self.sni.append(name)
        self.public = Far(PUBLIC, context=context)
        self.private = Far(PRIVATE, context=context)
        (folder / "names.json").write_text(json.dumps(names))

    async def __aenter__(self):
        await self.public.open()
        self.private.port = self.public.port
        await self.private.open()
        return self

    async def __aexit__(self, *_):
        await self.public.close()
        await self.private.close()

    def url(self, host=NAME):
        return f"https://{host}:{self.public.port}/mcp"

    @asynccontextmanager
    async def program(self, url, *words, trusted=True):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(MAIN), str(self.folder), url, *words),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={
                "PATH": os.environ["PATH"],
                **({"SSL_CERT_FILE": self.ca} if trusted else {}),
            },
        )
        try:
            yield ByHand(process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def refused(self, url, *words, **more):
        """Status and stderr of a program that could not begin."""
        async with self.program(url, *words, **more) as program:
            assert await program.initialize() is None, "it was let through"
            return await program.end()


def world(tmp_path, **names):
    return World(tmp_path, {NAME: [[PUBLIC]], **{k.replace("_", "."): v for k, v in names.items()}})


async def test_a_public_name_is_reached_with_its_own_host_and_server_name(tmp_path):
    async with world(tmp_path) as both, both.program(both.url()) as program:
        assert "result" in await program.initialize()
        assert "result" in await program.ask("tools/list")
        assert await program.end() == (0, "")

        assert both.public.headers["Host"] == f"{NAME}:{both.public.port}"
        assert set(both.sni) == {NAME}
        assert both.private.methods == []


@pytest.mark.parametrize(
    "addresses",
    [
        [PRIVATE],
        [PUBLIC, PRIVATE],
        ["10.0.0.1", PUBLIC],
        ["169.254.169.254"],
        ["::1"],
        ["::ffff:127.0.0.2"],
        ["64:ff9b::c0af:300a"],
        ["fd00::1"],
        ["0.0.0.0"],
    ],
)
async def test_a_name_with_an_address_that_is_not_public_is_refused_whole(tmp_path, addresses):
    async with world(tmp_path, bad_test_example=[addresses]) as both:
        status, said = await both.refused(both.url("bad.test.example"))

        assert status == CONFIG
        assert "bad.test.example leads to" in said
        assert len(said.splitlines()) == 1
        assert both.public.methods == both.private.methods == []


async def test_a_name_that_changes_its_mind_is_refused_at_the_next_connection(tmp_path):
    async with world(tmp_path, other_test_example=[[PUBLIC], [PRIVATE]]) as both:
        both.public.closes = True
        async with both.program(both.url("other.test.example")) as program:
            assert "result" in await program.initialize()
            refused = await program.ask("tools/call", {"name": "x"}, 2)
            status, said = await program.end()

        assert f"leads to {PRIVATE}" in refused["error"]["message"]
        assert status == CONFIG
        assert PRIVATE in said
        assert both.private.methods == []


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "metadata.google.internal",
        "2130706433",
        "0x7f000001",
        "127.1",
        "0177.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "10.0.0.1",
    ],
)
async def test_private_addresses_in_whatever_form_are_refused(tmp_path, host):
    async with world(tmp_path, metadata_google_internal=[[PUBLIC]]) as both:
        status, said = await both.refused(both.url(host))

        assert status == CONFIG, said
        assert both.private.methods == both.public.methods == []


async def test_a_private_address_is_reached_where_it_is_listed(tmp_path):
    async with world(tmp_path, other_test_example=[[PRIVATE]]) as both:
        url = both.url("other.test.example")
        async with both.program(url, "--allow", PRIVATE) as program:
            assert "result" in await program.initialize()
        assert both.private.methods[0] == "POST"

        status, said = await both.refused(url, "--allow", "10.0.0.0/8")
        assert status == CONFIG
        assert "network.allow does not list" in said


async def test_with_a_list_no_other_public_address_is_reached(tmp_path):
    async with world(tmp_path) as both:
        status, said = await both.refused(both.url(), "--allow", "10.0.0.0/8")

        assert status == CONFIG
        assert "network.allow does not list" in said
        assert both.public.methods == []


async def test_http_reaches_listed_private_addresses_and_no_public_one(tmp_path):
    async with world(tmp_path) as both, Far(PRIVATE) as plain:
        async with Far(PUBLIC, port=plain.port) as far:
            url = f"http://{{}}:{plain.port}/mcp"
            async with both.program(url.format(PRIVATE), "--allow", PRIVATE) as program:
                assert "result" in await program.initialize()
            status, said = await both.refused(url.format(PUBLIC), "--allow", PUBLIC)

            assert status == CONFIG
            assert "https" in said
            assert far.methods == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("where", ["private", "public"])
async def test_a_redirect_is_refused_and_its_target_named(tmp_path, status, where):
    async with world(tmp_path, other_test_example=[[PUBLIC]]) as both:
        host = PRIVATE if where == "private" else "other.test.example"
        both.public.status = status
        both.public.more = {"Location": f"https://{host}:{both.public.port}/mcp?key=secret"}
        ended, said = await both.refused(both.url())

        assert ended == CONFIG
        assert f"redirects to https://{host}" in said
        assert "secret" not in said
        assert both.public.methods == ["POST"]
        assert both.private.methods == []


async def test_a_redirect_in_mid_session_is_an_error_of_that_call(tmp_path):
    async with world(tmp_path) as both, both.program(both.url()) as program:
        assert "result" in await program.initialize()
        both.public.status, both.public.more = 307, {"Location": f"https://{PRIVATE}/"}
        refused = await program.ask("tools/call", {"name": "x"}, 2)
        both.public.status = 200

        assert f"https://{PRIVATE}" in refused["error"]["message"]
        assert "result" in await program.ask("tools/call", {"name": "x"}, 3)
        assert both.private.methods == []


async def test_a_certificate_of_another_name_or_authority_is_refused(tmp_path):
    async with world(tmp_path, strange_test_example=[[PUBLIC]]) as both:
        for url, trusted in ((both.url("strange.test.example"), True), (both.url(), False)):
            status, said = await both.refused(url, trusted=trusted)

            assert status == PROTOCOL
            assert "certificate" in said
        assert both.public.methods == []
