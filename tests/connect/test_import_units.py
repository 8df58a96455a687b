"""An import on a host with units: the secret reaches its server, and stands nowhere else."""

import json
import secrets

import pytest

from connect.importing import FILES, MANIFEST
from lab import recipe
from sandbox.test_secrets import answers
from support.containers import properties
from support.product import installed_product
from support.proxy_unit import unit_of

pytestmark = pytest.mark.lab

WITHIN = 60.0
PROGRAM = ("/usr/bin/python3", "/opt/mcp-servers/secretive.py")
# Where somebody could have written something: all of the disk, and /run without the credentials of
# units, which systemd keeps in memory for each unit alone.
SEARCH = (
    "grep -rlaF --exclude-dir=credentials -e {word} "
    "/boot /etc /home /opt /root /run /srv /tmp /usr/local /var 2>/dev/null; "
    "journalctl --output=export | grep -aF -e {word}"
)


@pytest.fixture(scope="module", params=recipe.SUITES)
def host(request, lab):
    made = installed_product(lab, request.param, f"imp-{request.param}")
    yield made
    made.container.down()


def run(host, file, *words, status=0):
    """Import a file that lies on the host; the entries of its report."""
    done = host.container.run("mcp-bridge", "import", file, "--json", *words, timeout=WITHIN)
    assert done.status == status, done
    return {each["entry"]: each for each in json.loads(done.out)["entries"]}


def client_file(value):
    """What Claude Desktop would have, with a server in the shape that the lab has one."""
    entry = {
        "command": PROGRAM[0],
        "args": [PROGRAM[1]],
        "env": {"FIRST_TOKEN": value, "LEVEL": "1"},
    }
    in_argv = {"command": PROGRAM[0], "args": [PROGRAM[1], f"--api-key={value}"]}
    return json.dumps({"mcpServers": {"held": entry, "told": in_argv}})


def found(host, word):
    return host.container.run("sh", "-c", SEARCH.format(word=word), timeout=WITHIN).out.split()


async def test_an_imported_secret_reaches_its_server_and_is_in_no_file_but_the_store(host):
    first, second = (f"ghp_SENTINEL{secrets.token_hex(10)}" for _ in range(2))
    host.container.write("/root/client.json", client_file(first), mode=0o600)
    assert found(host, first) == ["/root/client.json"]  # the search has eyes

    told = run(host, "/root/client.json", status=1)

    assert {name: each["what"] for name, each in told.items()} == {
        "held": "added",
        "told": "disabled",
    }
    await host.applied("held", "told")
    async with host.session("held", told["held"]["token"]) as client:
        await answers(client, first, variable="FIRST_TOKEN")
        host.container.write("/root/client.json", client_file("gone"), mode=0o600)
        assert found(host, first) == []
        before = properties(host.container, unit_of("held"), "InvocationID")
        files = host.container.check("sh", "-c", "sha256sum /etc/mcp-bridge/*/*")

        host.container.write("/root/client.json", client_file(first), mode=0o600)
        again = run(host, "/root/client.json", status=1)

        assert {each["what"] for each in again.values()} == {"unchanged"}
        assert host.container.check("sh", "-c", "sha256sum /etc/mcp-bridge/*/*") == files
        assert properties(host.container, unit_of("held"), "InvocationID") == before
        # Another value is taken when it is asked for, by a server that runs, too.
        host.container.write("/root/client.json", client_file(second), mode=0o600)
        refused = run(host, "/root/client.json", status=1)
        assert refused["held"]["what"] == "skipped"
        await answers(client, first, variable="FIRST_TOKEN")
        run(host, "/root/client.json", "--replace", status=1)
        await answers(client, second, variable="FIRST_TOKEN")
    host.container.check("rm", "/root/client.json")
    assert found(host, first) == [] and found(host, second) == []


@pytest.mark.parametrize("file", [name for name in MANIFEST if not name.endswith(".toml")])
def test_each_form_is_read_by_the_program_as_it_is_installed(file, host):
    host.container.write("/root/form", (FILES / file).read_text(encoding="utf-8"), mode=0o600)

    done = host.container.run("mcp-bridge", "import", "/root/form", "--dry-run", "--json")

    assert done.status in {0, 1}, done
    assert len(json.loads(done.out)["entries"]) == len(MANIFEST[file][1])
    assert "SENTINEL" not in done.out + done.err
