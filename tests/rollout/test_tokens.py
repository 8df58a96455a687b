"""rotate-tokens.yml under load: the new token counts before the old one ends, and nothing shows it."""

import json
import stat

import pytest

from rollout.playbooks import BIN
from rollout.served import Served
from support.client import Client
from support.product import Product, url_of
from support.waiting import eventually

pytestmark = [pytest.mark.lab, pytest.mark.network]

HEADERS = "/var/lib/mcp-bridge/headers.d"


@pytest.fixture(scope="module")
def hosts(lab, need, tmp_path_factory):
    need(str(BIN / "ansible-playbook"))
    made = Served(lab, tmp_path_factory.mktemp("tokens"), "tok")
    try:
        yield made.up("rotate-tokens.yml")
    finally:
        made.down()


async def is_refused(container, token):
    client = Client(url_of("echo"), token)
    client.dial = Product(container).dial
    async with client:
        return (await client.send(method="GET")).status == 401


def tokens(container):
    return json.loads(Product(container).cli("token", "list", "echo", "--json"))["tokens"]


def token_of(file):
    """The token of a header file, which only its owner reads."""
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    return file.read_text(encoding="utf-8").strip().removeprefix("Authorization: Bearer ")


async def test_tokens_are_rotated_under_load_without_a_failed_call(
    hosts, tmp_path, record_property
):
    old = [Product(container).token("echo") for container in hosts.containers]
    folder = tmp_path / "tokens"
    variables = {"mcp_bridge_tokens_directory": str(folder), "mcp_bridge_tokens_overlap": "10m"}
    async with hosts.load(*old) as first:
        shown = (await hosts.run_meanwhile("rotate-tokens.yml", "--check", "--diff")).checked()
        assert not folder.exists()
        # With all that Ansible can say.
        run = (await hosts.run_meanwhile("rotate-tokens.yml", "-vvv", **variables)).checked()
        new = [token_of(folder / name / "echo") for name in hosts.names]
        async with hosts.load(*new) as second:
            pass

    record_property("calls", first.calls + second.calls)
    record_property("failed_calls", len(first.failed) + len(second.failed))
    assert first.failed == second.failed == []
    assert all(shown.changed.values())
    for container, before, after in zip(hosts.containers, old, new, strict=True):
        assert before != after
        newest, *older = sorted(tokens(container), key=lambda token: token["expires"] or "z")[::-1]
        assert newest["expires"] is None
        assert all(token["expires"] for token in older)
        assert container.run("ls", f"{HEADERS}/echo").status != 0
        assert after not in run.output
        assert "Bearer" not in run.output
        everywhere = ("grep", "-rqs", after, "/etc", "/var", "/tmp", "/root", "/home")
        assert container.run(*everywhere).status == 1
        assert after not in container.check("journalctl", "--no-pager")

    hosts.run("rotate-tokens.yml", mcp_bridge_tokens_overlap="1s").checked()
    for container, before, after in zip(hosts.containers, old, new, strict=True):
        await eventually(lambda c=container, b=before: is_refused(c, b))
        await eventually(lambda c=container, a=after: is_refused(c, a))


async def test_without_a_directory_the_new_token_stays_on_the_host(hosts):
    hosts.run("rotate-tokens.yml").checked()

    for container in hosts.containers:
        assert container.check("stat", "-c", "%a %U", f"{HEADERS}/echo").strip() == "600 root"
        assert "hello" in Product(container).cli("call", "echo", "echo", '{"text": "hello"}')


def test_a_server_that_has_no_such_token_is_left_alone(hosts):
    run = hosts.run("rotate-tokens.yml", mcp_bridge_tokens_servers=["absent"]).checked()
    assert set(run.changed.values()) == {0}


def test_an_overlap_of_nothing_is_refused(hosts):
    run = hosts.run("rotate-tokens.yml", mcp_bridge_tokens_overlap="0s")
    assert run.status != 0
    assert "mcp_bridge_tokens_overlap is 0s" in run.output


def test_a_mistake_in_a_server_s_file_keeps_no_token_from_being_rotated(hosts):
    for container in hosts.containers:
        Product(container).token("echo")
    old = [tokens(container) for container in hosts.containers]
    for container in hosts.containers:
        container.write("/etc/mcp-bridge/servers.d/broken.json", "{")
    try:
        hosts.run("rotate-tokens.yml").checked()
    finally:
        for container in hosts.containers:
            container.check("rm", "/etc/mcp-bridge/servers.d/broken.json")

    for container, before in zip(hosts.containers, old, strict=True):
        new = {token["id"] for token in tokens(container)} - {token["id"] for token in before}
        assert len(new) == 1
