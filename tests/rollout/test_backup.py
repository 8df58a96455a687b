"""backup.yml, a wiped host, restore.yml: the same tokens, definitions and state."""

import stat

import pytest

from rollout.playbooks import BIN
from rollout.served import Served
from support.footprint import listing
from support.product import Product, echo

pytestmark = [pytest.mark.lab, pytest.mark.network]

STATE = ("/etc/mcp-bridge", "/etc/credstore", "/etc/systemd/system")
STATE += ("/var/lib/mcp-bridge", "/var/lib/private/mcp-bridge")
AUDIT = "/var/lib/mcp-bridge/audit.d"
DROP_IN = "/etc/systemd/system/autobot-mcp-bridge@echo.service.d/90-mine.conf"


@pytest.fixture(scope="module")
def hosts(lab, need, tmp_path_factory):
    need(str(BIN / "ansible-playbook"))
    folder = tmp_path_factory.mktemp("backup")
    made = Served(lab, folder, "bak")
    made.variables["mcp_bridge_backup_directory"] = str(folder / "backups")
    try:
        yield made.up("backup.yml")
    finally:
        made.down()


def contents(container):
    """The digest of every file of the bridge's state but the audit, which goes on; what each path is."""
    files = f"find {' '.join(STATE)} -path {AUDIT} -prune -o -type f"
    digests = container.check("sh", "-c", f"{files} -exec sha256sum {{}} + | sort -k 2")
    places = tuple(f"{path.lstrip('/')}" for path in STATE)
    paths = {line for line in listing(container) if line.startswith(places)}
    return {*digests.splitlines(), *paths}


async def test_a_wiped_host_is_restored_to_what_it_was(hosts, record_property):
    tokens = []
    for container in hosts.containers:
        product = Product(container)
        product.cli("add", "byhand", "--", *echo("x")["command"])
        tokens.append((product.token("byhand"), product.token("echo")))
        container.check("install", "-d", "-m", "700", "/etc/credstore")
        container.write("/etc/credstore/vendor", "a secret", mode=0o600)
        container.check("mkdir", "-p", DROP_IN.rpartition("/")[0])
        container.write(DROP_IN, "[Service]\nNice=5\n")
        async with hosts.session(container, tokens[-1][0], "byhand") as client:
            await client.text("echo", text="x")
        (own,) = container.check(
            "sh", "-c", "echo /var/lib/private/mcp-bridge/default/-/byhand"
        ).split()
        container.check("sh", "-c", f"echo note > {own}/note")
    hosts.run("backup.yml", "--check", "--diff").checked()
    hosts.run("backup.yml").checked()
    before = [contents(container) for container in hosts.containers]
    recorded = [container.check("cat", f"{AUDIT}/audit.jsonl") for container in hosts.containers]
    assert all('"tool_call"' in lines for lines in recorded)
    hosts.run("remove.yml").checked()
    for container in hosts.containers:
        container.check("rm", "-rf", "/etc/credstore")
        assert not any("var/lib/mcp-bridge" in line for line in listing(container))
    hosts.run("restore.yml", "--check", "--diff").checked()
    hosts.run("restore.yml").checked()

    after = [contents(container) for container in hosts.containers]
    differing = sum(len(now ^ then) for now, then in zip(after, before, strict=True))
    record_property("differing_paths", differing)
    assert [now ^ then for now, then in zip(after, before, strict=True)] == [set(), set()]
    assert sum(map(len, before)) > 0
    for container, lines in zip(hosts.containers, recorded, strict=True):
        assert container.check("cat", f"{AUDIT}/audit.jsonl").startswith(lines)
        container.check("mcp-bridge", "audit", "verify")
    for container, both in zip(hosts.containers, tokens, strict=True):
        for name, token in zip(("byhand", "echo"), both, strict=True):
            async with hosts.session(container, token, name) as client:
                assert await client.text("echo", text="back") == "back"


def test_what_came_after_the_backup_is_gone_after_a_restore(hosts):
    for container in hosts.containers:
        Product(container).cli("add", "later", "--", *echo("x")["command"])
    hosts.run("restore.yml").checked()

    for container in hosts.containers:
        assert '"later"' not in Product(container).cli("list", "--json")
        assert container.run("systemctl", "is-active", "autobot-mcp-bridge@later.socket").status


def test_the_archive_is_its_owner_s_alone(hosts):
    hosts.run("backup.yml").checked()

    folder = hosts.rollout.folder / "backups"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    for container in hosts.containers:
        assert "mcp-bridge-backup" not in container.check("ls", "/tmp", "/var/tmp")
