"""Real servers from npm and PyPI do real work, each in its own sandbox.

Each records `NAME_cold_start_ms`, of a call that has to start it, and `NAME_memory_mib`.
"""

import asyncio
import json
import re
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from lab import recipe
from sandbox import packages
from sandbox.packages import server
from support.at_work import at_work
from support.chromium import PROGRAM, chromium_layer
from support.client import answer_to, text_of
from support.containers import properties
from support.debian import debian_layer
from support.stocked import stocked_product

pytestmark = [pytest.mark.lab, pytest.mark.network]


@pytest.fixture(scope="module", params=recipe.SUITES)
def host(request, lab, need):
    suite = request.param
    layers = [chromium_layer(lab, suite), debian_layer(lab, suite, "git")]
    with stocked_product(lab, suite, f"work-{suite}", need, packages.ALL, layers) as product:
        yield product


async def refused(client, tool, **arguments):
    """The words of a tool that could not do it."""
    answer = await client.call(tool, arguments)
    assert answer["result"]["isError"], answer
    return answer["result"]["content"][0]["text"]


async def done(client, tool, **arguments):
    """The words of a tool that could."""
    answer = await client.call(tool, arguments)
    assert not answer["result"].get("isError"), answer
    return text_of(answer)


async def test_everything_echoes_adds_tells_its_progress_and_serves_a_resource(
    host, record_property
):
    async with at_work(host, server("everything", packages.EVERYTHING)) as work:
        client = work.client
        assert await done(client, "echo", message="héllo") == "Echo: héllo"
        assert "42" in await done(client, "get-sum", a=2, b=40)

        steps = {"duration": 0.3, "steps": 3}
        message = client.call_of("trigger-long-running-operation", steps, ..., "steps")
        response = await client.send(message)
        told = [m["params"] for m in response.messages if m.get("method", "").endswith("progress")]
        assert [params["progress"] for params in told] == [1, 2, 3]
        assert {params["progressToken"] for params in told} == {"steps"}
        assert "completed" in text_of(answer_to(response, message["id"]))

        listed = (await client.request("resources/list"))["result"]["resources"]
        uri = listed[0]["uri"]
        (content,) = (await client.request("resources/read", {"uri": uri}))["result"]["contents"]
        assert content["uri"] == uri and content["text"]

        await work.is_confined(compiles=True)
        await work.record(record_property, "echo", {"message": "x"})


async def test_a_file_server_reads_and_writes_below_its_paths_and_nowhere_else(
    host, record_property
):
    host.container.check("sh", "-ec", FILES)
    paths = {"read": ["/srv/files/read"], "write": ["/srv/files/write"]}
    definition = server("files", packages.FILESYSTEM, "/srv/files", "/home/alice")
    async with at_work(host, {**definition, "paths": paths, "groups": ["work"]}) as work:
        client = work.client
        assert await done(client, "read_text_file", path="/srv/files/read/note") == "a note\n"
        new = {"path": "/srv/files/write/new", "content": "by the server"}
        await done(client, "write_file", **new)

        # Allowed to the server by its own words, and not by its sandbox.
        elsewhere = {**new, "path": "/srv/files/read/new"}
        assert "EROFS" in await refused(client, "write_file", **elsewhere)
        await refused(client, "read_text_file", path="/home/alice/note")

        uid = properties(host.container, work.unit, "UID")["UID"]
        there = host.container.check("stat", "-c", "%u %G %a %s", "/srv/files/write/new")
        assert there == f"{uid} work 600 {len(new['content'])}\n"
        assert host.container.check("cat", "/home/alice/note") == "a note\n"
        await work.is_confined(compiles=True)
        await work.record(record_property, "list_directory", {"path": "/srv/files/read"})


FILES = """
groupadd --force work
mkdir -p /srv/files/read /srv/files/write /home/alice
for each in /srv/files/read /home/alice; do echo a note > $each/note; done
chmod 755 /srv/files /srv/files/read /home/alice
chgrp work /srv/files/write; chmod 2770 /srv/files/write
"""


async def test_a_memory_server_has_its_graph_again_after_its_process_has_ended(
    host, record_property
):
    place = "/var/lib/mcp-bridge/default/-/memory/memory.jsonl"
    definition = server("memory", packages.MEMORY)
    async with at_work(host, {**definition, "env": {"MEMORY_FILE_PATH": place}}) as work:
        client = work.client
        entity = {"name": "Ada", "entityType": "person", "observations": ["wrote a program"]}
        await done(client, "create_entities", entities=[entity])
        await work.is_confined(compiles=True)
        before = properties(host.container, work.unit, "InvocationID")

        await work.ended()
        graph = json.loads(await done(client, "read_graph"))

        assert graph["entities"] == [entity]
        assert properties(host.container, work.unit, "InvocationID") != before
        kept = host.container.check("stat", "-c", "%a", place.replace("lib", "lib/private"))
        assert kept == "600\n"
        await work.record(record_property, "read_graph", {})


async def test_a_thinking_server_counts_its_thoughts(host, record_property):
    async with at_work(host, server("thinking", packages.THINKING)) as work:
        first = {"thought": "a", "thoughtNumber": 1, "totalThoughts": 2, "nextThoughtNeeded": True}
        last = {**first, "thought": "b", "thoughtNumber": 2, "nextThoughtNeeded": False}
        for thought, length in ((first, 1), (last, 2)):
            told = json.loads(await done(work.client, "sequentialthinking", **thought))
            assert told["thoughtHistoryLength"] == length
        await work.is_confined(compiles=True)
        await work.record(record_property, "sequentialthinking", first)


async def test_a_time_server_knows_the_zones(host, record_property):
    definition = server("time", packages.TIME, "--local-timezone=UTC")
    async with at_work(host, definition) as work:
        asked = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        told = json.loads(await done(work.client, "convert_time", **asked))
        assert re.search("T21:00", told["target"]["datetime"])
        await work.is_confined()
        await work.record(record_property, "get_current_time", {"timezone": "UTC"})


async def test_a_git_server_commits_to_a_repository_of_the_hosts(host, record_property):
    host.container.check("sh", "-ec", REPOSITORY)
    repo = "/srv/repo"
    keys = {"paths": {"write": [repo]}, "groups": ["work"], "env": OF_GIT}
    # What the group is to read and write, too (docs/OPERATE.md).
    host.container.write(f"{DROP_INS}/autobot-mcp-bridge@git.service.d/90-own.conf", GROUPS)
    definition = server("git", packages.GIT, f"--repository={repo}", **keys)
    async with at_work(host, definition) as work:
        client = work.client
        assert "new.txt" in await done(client, "git_status", repo_path=repo)
        await done(client, "git_add", repo_path=repo, files=["new.txt"])
        await done(client, "git_commit", repo_path=repo, message="Add a file")
        assert "Add a file" in await done(client, "git_log", repo_path=repo)

        log = ("git", "-C", repo, "log", "--format=%an %s")
        assert host.container.check(*log) == "a server Add a file\nroot Begin\n"
        unshared = ("find", repo, "(", "!", "-group", "work", "-o", "!", "-perm", "-g=r", ")")
        assert host.container.check(*unshared) == ""
        await work.is_confined()
        await work.record(record_property, "git_status", {"repo_path": repo})


DROP_INS = "/etc/systemd/system"
GROUPS = "[Service]\nUMask=0007\n"
REPOSITORY = """
groupadd --force work; rm -rf /srv/repo; mkdir /srv/repo; cd /srv/repo
git init --quiet
git -c user.name=root -c user.email=root@localhost commit --quiet --allow-empty --message Begin
echo text > new.txt; chgrp -R work .; chmod -R g+rwX .; find . -type d -exec chmod g+s {} +
"""
OF_GIT = {
    # The repository is not the server's own (git-config(1), GIT_CONFIG_COUNT and safe.directory).
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "/srv/repo",
    # Its library reads no name out of those.
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "a server"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "server@localhost"),
}


async def test_a_sqlite_server_keeps_a_database_of_its_own(host, record_property):
    database = "/var/lib/mcp-bridge/default/-/sqlite/shop.db"
    definition = server("sqlite", packages.SQLITE, f"--db-path={database}")
    async with at_work(host, definition) as work:
        client = work.client
        await done(client, "create_table", query="CREATE TABLE bread (kind TEXT, price INTEGER)")
        await done(client, "write_query", query="INSERT INTO bread VALUES ('rye', 3), ('oat', 4)")
        asked = {"query": "SELECT sum(price) AS total FROM bread"}
        assert "{'total': 7}" in await done(client, "read_query", **asked)
        await work.is_confined()

        await work.ended()
        assert "{'total': 7}" in await done(client, "read_query", **asked)
        await work.record(record_property, "read_query", asked)


async def test_a_fetch_server_reaches_the_address_of_its_list_and_no_other(host, record_property):
    listed, other = "127.0.0.1", "127.0.0.2"
    definition = server("fetch", packages.FETCH, "--allow-private-ips")
    network = {"mode": "list", "allow": [listed]}
    async with (
        pages(host, listed) as (url, asked),
        pages(host, other) as (elsewhere, theirs),
        at_work(host, {**definition, "network": network}) as work,
    ):
        assert "Fresh bread" in await done(work.client, "fetch", url=f"{url}/bread")
        assert "/bread" in asked
        await refused(work.client, "fetch", url=f"{elsewhere}/bread")
        assert theirs == []
        freely = ("/usr/bin/python3", "-c", FETCH, f"{elsewhere}/control")
        await asyncio.to_thread(host.container.check, *freely)
        assert theirs == ["/control"]
        await work.is_confined(network=True)
        await work.record(record_property, "fetch", {"url": f"{url}/bread"})


FETCH = (
    "import sys, urllib.request as u; u.build_opener(u.ProxyHandler({})).open(sys.argv[1]).read()"
)
PAGE = """<!doctype html><title>Bakery</title><h1>Bakery</h1>
<p>Fresh bread at seven, every day but Sunday, in the house beside the mill.</p>
<button onclick="this.textContent = 'Sold: ' + 6 * 7">Buy</button>"""


@asynccontextmanager
async def pages(product, address):
    """A web server in the container's network: its URL, and the paths that it was asked for."""
    asked = []

    async def page(request):
        asked.append(request.path)
        return web.Response(text=PAGE, content_type="text/html")

    application = web.Application()
    application.router.add_get("/{path:.*}", page)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    listener = product.listener(address)
    try:
        await web.SockSite(runner, listener).start()
        yield f"http://{address}:{listener.getsockname()[1]}", asked
    finally:
        await runner.cleanup()


async def test_a_browser_server_opens_a_page_and_presses_its_button(host, record_property):
    definition = {
        **server("browser", packages.BROWSER, *OF_BROWSER),
        "profile": "browser",
        "network": {"mode": "list", "allow": ["127.0.0.1"]},
        "limits": {"memory": "1G", "tasks": 512},
    }
    async with (
        pages(host, "127.0.0.1") as (url, asked),
        at_work(host, definition) as work,
    ):
        client = work.client
        shown = await done(client, "browser_navigate", url=f"{url}/shop")
        shown += await done(client, "browser_snapshot")
        assert "Fresh bread" in shown and "/shop" in asked
        (target,) = set(re.findall(r'button "Buy".*?\[ref=(\w+)\]', shown))
        await done(client, "browser_click", element="Buy", target=target)
        assert "Sold: 42" in await done(client, "browser_snapshot")
        await work.is_confined(compiles=True, network=True)
        await work.record(record_property, "browser_navigate", {"url": f"{url}/shop"})


OF_BROWSER = ("--headless", "--isolated", f"--executable-path={PROGRAM}")
