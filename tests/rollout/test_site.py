"""From a bare Debian to a served tool call by one run of a playbook, and all the way back."""

import hashlib
import json

import pytest

from lab import recipe
from lab.containers import Container
from rollout.playbooks import BIN, Rollout
from support.containers import properties
from support.footprint import listing
from support.product import Product

pytestmark = [pytest.mark.lab, pytest.mark.network]

TOKEN = "a token that only its client knows"
HELLO = {
    "name": "hello",
    "command": ["mcp-bridge", "demo"],
    "tokens_sha256": [hashlib.sha256(TOKEN.encode()).hexdigest()],
}
FILE = "/etc/mcp-bridge/servers.d/inventory.json"


class Hosts:
    """One bare host of each suite, and what the first runs have done with them."""

    def __init__(self, rollout: Rollout) -> None:
        self.rollout = rollout
        self.containers = rollout.up()
        # The first login of all leaves its marks: sudo's, and the message of the day.
        rollout.run("remove.yml").checked()
        self.bare = self.listings()
        self.check = self.site("--check", "--diff")
        self.checked = self.listings()
        self.first = self.site()
        self.second = self.site()

    def listings(self):
        """What lies on each host, but for Ansible's own directory of the administrator."""
        own = "home/admin/.ansible"
        found = map(listing, self.containers)
        return [{line for line in lines if not line.startswith(own)} for lines in found]

    def site(self, *words, servers=(HELLO,), **variables):
        definitions = {"mcp_bridge_servers_definitions": servers}
        return self.rollout.run("site.yml", *words, **definitions, **variables)

    def servers(self, *servers, **variables):
        definitions = {"mcp_bridge_servers_definitions": servers}
        return self.rollout.run("servers.yml", **definitions, **variables)


@pytest.fixture(scope="module")
def hosts(lab, need, tmp_path_factory):
    need(str(BIN / "ansible-playbook"))
    suites = {f"site-{suite}": suite for suite in recipe.SUITES}
    made = Hosts(Rollout(lab, tmp_path_factory.mktemp("site"), suites))
    yield made
    for container in made.containers:
        container.down()


def test_check_mode_passes_on_a_bare_host_shows_what_would_come_and_changes_nothing(hosts):
    assert hosts.check.status == 0, hosts.check.output
    assert all(count > 0 for count in hosts.check.changed.values())
    assert "+++ after: /etc/mcp-bridge/servers.d/inventory.json" in hosts.check.output
    left = zip(hosts.checked, hosts.bare, strict=True)
    assert [checked ^ bare for checked, bare in left] == [set(), set()]


async def test_one_run_leads_from_a_bare_host_to_a_served_call(hosts):
    assert hosts.first.status == 0, hosts.first.output
    for container in hosts.containers:
        assert "Ansible" in await greeting(container)


def test_a_second_run_changes_nothing(hosts):
    assert hosts.second.status == 0, hosts.second.output
    assert set(hosts.second.changed.values()) == {0}


def test_a_mistake_is_refused_before_the_host_has_it(hosts):
    before = [container.check("cat", FILE) for container in hosts.containers]
    run = hosts.servers({**HELLO, "limits": {"memory": "much"}})

    assert run.status != 0
    assert "limits.memory" in run.output
    assert [container.check("cat", FILE) for container in hosts.containers] == before


def test_what_the_host_cannot_give_is_refused_before_the_host_has_it(hosts):
    before = [container.check("cat", FILE) for container in hosts.containers]
    run = hosts.servers({**HELLO, "paths": {"read": ["/srv/gone"]}})

    assert run.status != 0
    assert "hello: $.paths.read[0]: /srv/gone: No such file" in run.output
    assert [container.check("cat", FILE) for container in hosts.containers] == before


async def test_a_server_of_another_file_that_is_left_out_fails_no_run(hosts):
    other = {"version": 1, "servers": [{**HELLO, "name": "other", "cwd": "/srv/gone"}]}
    path = "/etc/mcp-bridge/servers.d/other.json"
    for container in hosts.containers:
        container.write(path, json.dumps(other), mode=0o644)
    try:
        run = hosts.servers({**HELLO, "timeouts": {"idle": "4m"}})

        assert run.status == 0, run.output
        assert "'other'" in run.output or '"other"' in run.output
        for container in hosts.containers:
            assert "Ansible" in await greeting(container)
            found = json.loads(container.check("cat", "/var/lib/mcp-bridge/accepted.json"))
            specs = {entry["spec"]["name"]: entry for entry in found["servers"]}
            assert specs["hello"]["spec"]["timeouts"]["idle"] == 240.0
            assert specs["other"]["state"] == "refused"
    finally:
        for container in hosts.containers:
            container.check("rm", path)
    assert hosts.servers(HELLO).status == 0


def test_a_package_that_cannot_be_installed_ends_the_run_with_the_cause(hosts):
    run = hosts.servers(HELLO, {"name": "absent", "command": ["uvx", "no-such-package==1.0"]})

    assert run.status != 0
    assert "absent: " in run.output
    assert "no-such-package" in run.output.rpartition("absent: ")[2]
    assert hosts.servers(HELLO).status == 0


async def test_a_credential_reaches_its_server_and_nothing_that_is_printed(hosts):
    servers = [{**HELLO, "credentials": {"API_KEY": "vendor"}}]
    for secret in ("the first secret", "the second secret"):
        run = hosts.servers(*servers, mcp_bridge_servers_credentials={"vendor": secret})

        assert run.checked().output.count(secret) == 0
        for container in hosts.containers:
            await greeting(container)
            assert f"API_KEY={secret}" in environment(container, "hello")
            path = "/etc/mcp-bridge/credstore.encrypted/vendor"
            assert container.run("grep", "-q", secret, path).status == 1
    again = hosts.servers(*servers, mcp_bridge_servers_credentials={"vendor": secret})
    assert set(again.checked().changed.values()) == {0}


def test_a_renamed_server_is_served_and_its_old_unit_is_gone(hosts):
    hosts.servers({**HELLO, "name": "renamed"}).checked()

    for container in hosts.containers:
        old = properties(container, "autobot-mcp-bridge@hello.socket", "ActiveState")
        new = properties(container, "autobot-mcp-bridge@renamed.socket", "ActiveState")
        assert (old, new) == ({"ActiveState": "inactive"}, {"ActiveState": "active"})
        units = container.check("sh", "-c", "ls -R /etc/systemd/system")
        assert "autobot-mcp-bridge@hello" not in units


async def test_another_port_is_opened_and_the_old_one_given_back(hosts):
    config = {"listen": {"port": 8770}, "limits": {"sessions_per_server": 7}}
    hosts.site(mcp_bridge_host_config=config).checked()

    for container in hosts.containers:
        listening = container.check("ss", "-Hltn")
        assert "127.0.0.1:8770" in listening
        assert "127.0.0.1:8765" not in listening
    assert set(hosts.site(mcp_bridge_host_config=config).checked().changed.values()) == {0}


def test_removing_leaves_the_host_as_it_was(hosts):
    shown = hosts.rollout.run("remove.yml", "--check", "--diff").checked()
    assert set(shown.changed.values()) == {1}
    hosts.rollout.run("remove.yml").checked()

    left = zip(hosts.listings(), hosts.bare, strict=True)
    assert [now ^ bare for now, bare in left] == [set(), set()]
    for container in hosts.containers:
        units = ("list-units", "--all", "--plain", "--no-legend", "*mcp-bridge*", "mcpbridge*")
        assert container.check("systemctl", *units) == ""
    assert set(hosts.rollout.run("remove.yml").checked().changed.values()) == {0}


async def greeting(container: Container) -> str:
    async with Product(container).session("hello", TOKEN) as client:
        return await client.text("hello", name="Ansible")


def environment(container: Container, server: str) -> list[str]:
    """What the server's process was started with."""
    unit = f"autobot-mcp-bridge@{server}.service"
    pid = properties(container, unit, "MainPID")["MainPID"]
    return container.check("cat", f"/proc/{pid}/environ").split("\0")
