"""Secrets of servers: found by nobody else, named when they are missing, exchanged in use.

Each word that is looked for is looked for beside one that was planted in every place that is
searched, so that a search which finds nothing has looked.
"""

import hashlib
import json
import secrets

import pytest

from lab import recipe
from support.containers import properties, reaches
from support.load import Load
from support.product import installed_product
from support.proxy_unit import unit_of
from support.waiting import eventually, remains

pytestmark = pytest.mark.lab

PROGRAM = ("/usr/bin/python3", "/opt/mcp-servers/secretive.py")
SEARCH = ("/usr/bin/python3", "/opt/mcp-servers/searching.py")
NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
STORE = "/etc/mcp-bridge/credstore.encrypted"
WITHIN = 30.0
# Where root must find a secret: with the process that has it, and where root has put it.
ROOTS = {"/proc environ", "/run", "secrets"}
# Where the planted word must be found, by root at least.
PLANTED = {
    *("systemctl show", "systemctl cat", "systemctl status", "D-Bus", "journal"),
    *("/proc environ", "/proc cmdline", "/proc fd", "unit files", "/run", "state", "cores"),
    *("temporary files", "secrets"),
}
# Where nobody finds it, too: what the search of nobody is worth.
PLANTED_FOR_ALL = {
    *("systemctl show", "systemctl cat", "D-Bus", "/proc cmdline", "unit files", "/run"),
    "temporary files",
}


@pytest.fixture(scope="module", params=recipe.SUITES)
def host(request, lab):
    made = installed_product(lab, request.param, f"sec-{request.param}")
    yield made
    made.container.down()


def server(name, *words, **keys):
    return {"name": name, "command": [*PROGRAM, *words], **keys}


def made_up():
    """A secret that no pattern of a redaction knows."""
    return f"velvet otter {secrets.token_hex(6)} quiet"


def digest_of(secret):
    return hashlib.sha256(secret.encode()).hexdigest()


def secret(host, *words, value="", status=0):
    done = host.container.run("mcp-bridge", "secret", *words, stdin=value, timeout=WITHIN)
    assert done.status == status, done
    return done.out + done.err


async def answers(client, value, **arguments):
    async def is_so():
        return await client.text("digest", **arguments) == digest_of(value)

    await eventually(is_so, within=WITHIN, what="the digest")


async def test_a_secret_is_found_nowhere_but_where_it_must_be(host, record_property):
    first, second, planted = made_up(), made_up(), f"planted-{secrets.token_hex(8)}"
    secret(host, "set", "first", value=first)
    host.container.write("/etc/acme/second", second, mode=0o600)
    plant(host, planted)
    await host.serve(
        server("one", credentials={"FIRST": "first"}),
        server("two", credentials={"SECOND": {"file": "/etc/acme/second", "as": "file"}}),
        server("other"),
        server(planted, planted, env={"PLANTED": f"-{planted}-"}),
    )
    words = {"first": first, "second": second, "planted": planted}
    units = [unit_of(name) for name in ("one", "two", planted)]
    told = []
    async with host.session(planted) as decoy:
        await decoy.text("echo", text="")
        told.append(await dying(decoy, planted))
        await decoy.text("echo", text="")
        async with host.session("one") as one, host.session("two") as two:
            told += [await dying(client, "something else") for client in (one, two)]
            # The positive control: the servers have them.
            await answers(one, first, variable="FIRST")
            await answers(two, second, variable="SECOND", file=True)
            async with host.session("other") as other:
                asked = {"words": in_hex(words), "units": units}
                by_other = json.loads(await other.text("search", within=60, **asked))
            by_nobody = searched(host, words, units, *NOBODY)
            by_root = searched(host, words, units)
            told.append(await host.metrics())
            told += [host.cli("status", name, "--json") for name in ("one", "two", planted)]
            told += [host.cli("list", "--json"), host.cli("secret", "list", "--json")]
            told.append(json.dumps(host.accepted()))

    seen = {name: [text for text in told if word in text] for name, word in words.items()}
    hits = {
        name: [by_nobody[name], by_other[name], seen[name], beyond(by_root[name])]
        for name in ("first", "second")
    }
    record_property("hits", sum(map(counted, hits.values())))
    assert hits == {name: [{}, {}, [], {}] for name in hits}
    # And the search has eyes.
    assert by_root["planted"].keys() >= PLANTED
    assert by_nobody["planted"].keys() >= PLANTED_FOR_ALL
    assert by_other["planted"].keys() >= {"unit files"}
    assert len(seen["planted"]) >= 4
    assert by_root["first"].keys() == {"/proc environ", "/run"}
    assert by_root["second"].keys() == {"/run", "secrets"}


def plant(host, word):
    """Put it where neither a unit nor a server would; the decoy of its name does the rest."""
    # A core is written although the profile forbids it, where the server can write.
    drop_in = f"/etc/systemd/system/{unit_of(word)}.d/90-core.conf"
    host.container.write(drop_in, "[Service]\nLimitCORE=infinity\n")
    host.container.write("/tmp/planted", word)
    host.container.write("/etc/acme/planted", word)
    holder = f"exec 7< /etc/acme/planted; exec sleep 3600 # {word}"
    host.container.check("systemd-run", "--quiet", "sh", "-c", holder)


async def dying(client, words):
    """What a client is told when the server ends with these last words, and when it aborts."""
    said = await client.call("blab", {"says": words}, within=WITHIN)
    death = said["error"]["data"]["death"]
    # A busy journal gives the words too late for the client.
    assert death["status"] == 3 and death.get("stderr", [words])[-1] == words
    return json.dumps([said, await client.call("abort", within=WITHIN)])


def in_hex(words):
    return {name: word.encode().hex() for name, word in words.items()}


def searched(host, words, units, *as_whom):
    asked = json.dumps({"words": in_hex(words)})
    text = host.container.check(*as_whom, *SEARCH, *units, stdin=asked, timeout=120.0)
    return json.loads(text)


def beyond(places):
    return {place: where for place, where in places.items() if place not in ROOTS}


def counted(hits):
    return sum(len(some) for some in hits)


async def test_a_secret_in_a_file_is_any_bytes_for_its_server_alone_and_goes_with_it(host):
    value = b"\0\xff binary\n\n"
    host.container.check("mcp-bridge", "secret", "set", "blob", stdin=value)
    key = {"name": "blob", "as": "file"}
    await host.serve(server("reads", credentials={"BLOB": key}), server("near"))
    async with host.session("reads") as client, host.session("near") as near:
        found = await client.text("digest", variable="BLOB", file=True)
        assert found == hashlib.sha256(value).hexdigest()
        path = await client.text("path", variable="BLOB")
        assert path == f"/run/credentials/{unit_of('reads')}/BLOB.file"
        assert host.container.run("test", "-e", path).status == 0
        assert host.container.run(*NOBODY, "cat", path).status != 0
        assert "BLOB" not in json.loads(await near.text("names"))
    host.cli("stop", "reads")
    await reaches(host.container, unit_of("reads"), ActiveState="inactive")
    assert host.container.run("test", "-e", path).status != 0


async def test_a_missing_secret_is_its_own_server_s_state_and_names_itself(host):
    host.write_servers(server("lacks", credentials={"TOKEN": "nowhere"}), server("whole"))
    said = host.container.run("mcp-bridge", "apply")
    assert said.status == 0
    states = {name: entry["state"] for name, entry in host.accepted().items()}
    assert states == {"lacks": "credential_missing", "whole": None}
    checked = host.container.run("mcp-bridge", "check")
    assert checked.status == 65
    for text in (said.out, checked.out):
        assert "lacks: $.credentials.TOKEN: there is no secret nowhere in" in text
        assert "run: mcp-bridge secret set nowhere" in text

    async with host.session("whole") as client:
        assert await client.text("echo", text="served") == "served"
    refused = host.session("lacks", opened=False)
    async with refused:
        response = await refused.send(refused.initialize_of())
    assert response.status == 503
    error = json.loads(response.body)["error"]
    assert error["data"]["code"] == "credential_missing"
    assert "mcp-bridge secret set nowhere" in error["message"]
    row = json.loads(host.cli("status", "lacks", "--json"))
    assert row["state"] == "credential_missing" and "nowhere" in row["detail"]

    secret(host, "set", "nowhere", value="now")
    await host.applied("lacks", "whole")
    async with host.session("lacks") as client:
        await answers(client, "now", variable="TOKEN")


@pytest.mark.parametrize("source", ["encrypted", "plain", "file", "foreign"])
async def test_a_start_without_its_secret_names_it(host, source):
    name, path = f"lost-{source}", f"{STORE}/lost-{source}"
    key = name
    if source == "file":
        key = {"file": (path := "/etc/acme/lost")}
        host.container.write(path, "there", mode=0o600)
    elif source == "plain":
        path = f"/etc/credstore/{name}"
        host.container.write(path, "there", mode=0o600)
    else:
        secret(host, "set", name, value="there")
    await host.serve(server(name, credentials={"WORD": key}))
    await is_at_rest(host)
    if source == "foreign":
        host.container.write(path, "bm90IG9mIHRoaXMgaG9zdA==\n", mode=0o600)
    else:
        host.container.check("rm", path)

    client = host.session(name, opened=False)
    async with client:
        response = await client.send(client.initialize_of(), within=WITHIN)
    error = json.loads(response.body)["error"]
    expected = {
        "encrypted": f"WORD: there is no {path}; run: mcp-bridge secret set {name}",
        "plain": f"WORD: there is no {path}; run: mcp-bridge secret set {name}",
        "file": f"WORD: there is no {path}",
        "foreign": f"the files are there; this host cannot decrypt one of {name}",
    }[source]
    death = error["data"]["death"]
    assert death["cause"] == "setup" and death["step"] == "CREDENTIALS"
    assert death["detail"] == expected
    assert expected in error["message"]
    logged = host.logs(f"MCP_INSTANCE={name}", "_SYSTEMD_UNIT=mcp-bridge-proxy.service")
    assert any(expected in line for line in logged)


async def is_at_rest(host):
    """No change of the configuration is on its way any more."""

    def rests():
        units = ("mcp-bridge-changed.service", "mcp-bridge-apply.service")
        run = host.container.run("systemctl", "is-active", *units).out.split()
        noted = host.container.run("test", "-e", "/run/mcp-bridge/changed").status == 0
        return run == ["inactive", "inactive"] and not noted

    await eventually(rests, within=WITHIN, what="apply rests")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        ("chmod 644 /etc/acme/shared", "/etc/acme/shared: others may read or write it"),
        ("chown nobody /etc/acme/shared", "/etc/acme/shared: it must belong to root"),
        ("chmod 777 /etc/acme", "/etc/acme: others may write it"),
        ("rm /etc/acme/shared", "/etc/acme/shared: No such file or directory"),
    ],
)
async def test_a_file_that_is_not_root_s_alone_is_refused(host, spoil, told):
    servers = server("shares", credentials={"SHARED": {"file": "/etc/acme/shared"}}), server("well")
    host.container.check("sh", "-c", "mkdir -p /etc/acme; chmod 755 /etc/acme")
    host.container.check("rm", "-f", "/etc/acme/shared")
    host.container.write("/etc/acme/shared", "word", mode=0o600)
    await host.serve(*servers)
    try:
        host.container.check("sh", "-c", spoil)
        host.container.check("mcp-bridge", "apply")
        found = host.accepted()
        assert found["shares"]["state"] == "credential_missing" and found["well"]["state"] is None
        assert told in found["shares"]["why"]
    finally:
        host.container.check("sh", "-c", "chmod 755 /etc/acme; rm -f /etc/acme/shared")


async def test_a_rotation_between_calls_fails_none_of_them(host):
    secret(host, "set", "turning", value="old")
    await host.serve(*(server(name, credentials={"WORD": "turning"}) for name in ("a", "b")))
    async with host.session("a") as first, host.session("b") as second:
        await answers(first, "old", variable="WORD")
        async with Load([first, second]) as load:
            for value in ("new", "newer"):
                await load.more(100)
                said = secret(host, "rotate", "turning", value=value)
                assert "a (WORD), b (WORD)" in said
                await answers(first, value, variable="WORD")
                await answers(second, value, variable="WORD")
        assert load.failed == []
        assert load.calls > 200


async def test_a_rotation_now_ends_what_runs_and_the_session_goes_on(host):
    secret(host, "set", "urgent", value="old")
    await host.serve(
        server("runs", credentials={"WORD": "urgent"}),
        server("sleeps", credentials={"WORD": "urgent"}),
    )
    async with host.session("runs") as client:
        await answers(client, "old", variable="WORD")
        before = invocation(host, "runs")
        said = secret(host, "rotate", "urgent", "--restart", "now", value="new")
        assert f"restarted: {unit_of('runs')}\n" in said
        assert invocation(host, "runs") not in ("", before)
        await answers(client, "new", variable="WORD")
        assert (
            properties(host.container, unit_of("sleeps"), "ActiveState")["ActiveState"]
            == "inactive"
        )


async def test_a_rotation_without_a_restart_counts_from_the_next_start(host):
    secret(host, "set", "patient", value="old")
    servers = [server("stays", credentials={"WORD": "patient"})]
    await host.serve(*servers)
    async with host.session("stays") as client:
        await answers(client, "old", variable="WORD")
        before = invocation(host, "stays")
        secret(host, "rotate", "patient", "--restart", "never", value="new")
        # Not by another change of the configuration either.
        await host.serve(*servers, server("more"))
        await remains(lambda: invocation(host, "stays") == before, during=1.0)
        await answers(client, "old", variable="WORD")
        host.container.check("systemctl", "restart", unit_of("stays"))
        await answers(client, "new", variable="WORD")


def invocation(host, name):
    return properties(host.container, unit_of(name), "InvocationID")["InvocationID"]


async def test_a_secret_in_last_words_reaches_the_journal_and_nobody_else(host):
    value = made_up()
    secret(host, "set", "spilt", value=value)
    await host.serve(server("spills", credentials={"WORD": "spilt"}))
    async with host.session("spills") as client:
        said = await client.call("blab", {"says": "my word is {WORD}!"}, within=WITHIN)
        shown = host.cli("status", "spills", "--json")

    def record():
        text = host.container.check("sh", "-c", "cat /run/mcp-bridge/ended/*.json")
        return text if "my word is «redacted»!" in text else ""

    records = await eventually(record, within=WITHIN, what="the record of its end")
    told = json.dumps([said, shown, records, host.logs("-t", "mcp-bridge-proxy")])
    assert said["error"]["data"]["death"]["status"] == 3
    assert value not in told
    assert f"my word is {value}!" in host.logs("-t", "mcp-bridge@spills")


async def test_a_secret_is_set_listed_and_removed(host):
    assert "the value is empty" in secret(host, "set", "plainly", value="\n", status=65)
    assert "1000000 bytes" in secret(host, "set", "plainly", value="x" * 1_000_001, status=65)
    assert "NAME" in secret(host, "set", "No/Name", value="x", status=64)
    secret(host, "set", "plainly", value="a value\n")
    assert host.container.check("stat", "-c", "%a %U", f"{STORE}/plainly") == "600 root\n"
    assert "rotate" in secret(host, "set", "plainly", value="x", status=64)
    assert "secret set" in secret(host, "rotate", "unset", value="x", status=64)

    host.container.write("/etc/credstore/by-hand", "x", mode=0o600)
    host.container.write("/etc/acme/its-own", "x", mode=0o600)
    keys = {"A": "plainly", "B": "by-hand", "C": "absent", "D": {"file": "/etc/acme/its-own"}}
    host.write_servers(server("user", credentials=keys))
    host.container.check("mcp-bridge", "apply")
    listed = json.loads(host.cli("secret", "list", "--json"))["secrets"]
    kinds = {row["name"]: row["kind"] for row in listed if row["servers"]}
    assert kinds == {
        "plainly": "encrypted",
        "by-hand": "plain file",
        "absent": "missing",
        "/etc/acme/its-own": "root's file",
    }
    assert "user (A)" in host.cli("secret", "list")

    too_long = "x" * (128 << 10)
    for bad in ("a\0b", too_long):
        said = secret(host, "rotate", "plainly", value=bad, status=65)
        assert 'user (A) has it as a variable; give it there "as": "file"' in said
        assert bad not in said
    assert "in use: user (A)" in secret(host, "rm", "plainly", status=64)
    assert host.container.run("test", "-e", f"{STORE}/plainly").status == 0
    secret(host, "rm", "plainly", "--force")
    assert host.container.run("test", "-e", f"{STORE}/plainly").status != 0
    assert "$.credentials.A" in host.accepted()["user"]["why"]
    assert "by hand" in secret(host, "rm", "by-hand", "--force", status=66)


# Types the word once it is asked for, and prints what the terminal has shown.
TYPE = """
d=$(mktemp -d); mkfifo $d/in
script -qefc 'mcp-bridge secret set typed' $d/out < $d/in > /dev/null & exec 3> $d/in
until grep -q 'not shown' $d/out; do sleep 0.1; done
echo "$0" >&3; wait; cat $d/out
"""


def test_a_value_that_is_typed_is_not_shown(host):
    word = made_up()
    shown = host.container.check("sh", "-c", TYPE, word, timeout=WITHIN)

    assert "the value of typed, which is not shown:" in shown and word not in shown
    decrypted = host.container.check("systemd-creds", "decrypt", "--name=", f"{STORE}/typed", "-")
    assert decrypted == word


def test_who_is_not_root_is_told_why_there_are_no_secrets_for_him(host):
    done = host.container.run(*NOBODY, "mcp-bridge", "secret", "list")

    assert done.status == 77 and "secrets are root's" in done.err
