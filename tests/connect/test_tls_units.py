"""TLS where the proxy is a unit: root's files, renewed under open streams, read by nobody else."""

import asyncio
import json
import ssl

import pytest

from lab import recipe
from support.authority import Authority
from support.containers import properties
from support.product import echo, installed_product
from support.waiting import eventually
from support.wire import Connection

pytestmark = pytest.mark.lab

LIVE, ARCHIVE = "/etc/letsencrypt/live/mcp.example.com", "/etc/letsencrypt/archive/mcp.example.com"
URL = "https://127.0.0.1:8765"
PROXY = "mcp-bridge-proxy.service"
TAKEN = "/run/mcp-bridge/tls.pem"
STREAMS = 50


class Acme:
    """An ACME client in the container: certificates as certbot lays them."""

    def __init__(self, product, folder):
        self.product = product
        self.folder = folder
        self.authority = Authority(folder)
        self.number = 0
        self.der = b""
        product.container.check("mkdir", "-p", LIVE, ARCHIVE)
        product.container.check("chmod", "-R", "0700", "/etc/letsencrypt")

    def issue(self, **options):
        """New files, root's alone, and their links switched one after the other."""
        self.number += 1
        pair = [self.folder / "c.pem", self.folder / "k.pem"]
        self.der = self.authority.renew(*pair, **options)
        for name, file in zip(("fullchain", "privkey"), pair, strict=True):
            there, link = f"{ARCHIVE}/{name}{self.number}.pem", f"{LIVE}/{name}.pem"
            script = (
                f"umask 077; cat > {there} && ln -s {there} {link}.new && mv -T {link}.new {link}"
            )
            self.product.container.check("sh", "-c", script, stdin=file.read_text(encoding="utf-8"))

    def rewrite(self, **options):
        """In place, as other clients do."""
        pair = [self.folder / "c.pem", self.folder / "k.pem"]
        self.der = self.authority.renew(*pair, **options)
        for name, file in zip(("fullchain", "privkey"), pair, strict=True):
            path = f"{ARCHIVE}/{name}{self.number}.pem"
            text = file.read_text(encoding="utf-8")
            self.product.container.check("sh", "-c", f"cat > {path}", stdin=text)


@pytest.fixture(scope="module", params=recipe.SUITES)
def product(request, lab):
    """An installation whose boots and certificates concern no other test."""
    made = installed_product(lab, request.param, f"tls-{request.param}")
    yield made
    made.container.down()


@pytest.fixture
async def acme(product, tmp_path):
    await product.serve(echo("sealed"))
    made = Acme(product, tmp_path)
    yield made
    product.write("/etc/mcp-bridge/host.toml", "")

    async def plain():
        shown = await asyncio.to_thread(product.cli, "list", "--json")
        return str(json.loads(shown)["url"]).startswith("http://")

    await eventually(plain, within=60)
    product.container.check("rm", "-rf", "/etc/letsencrypt")


async def served(product, acme, key=f"{LIVE}/privkey.pem"):
    """Have the proxy serve the certificate that was issued last."""
    table = f'[tls]\ncertificate = "{LIVE}/fullchain.pem"\nkey = "{key}"\n'
    product.write("/etc/mcp-bridge/host.toml", table)
    await shows(product, acme)


async def shown(product, context):
    connection = await Connection.open(URL, product.dial, tls=context)
    try:
        return connection.certificate
    finally:
        await connection.close()


async def shows(product, acme):
    context = acme.authority.client()

    async def so():
        try:
            return await shown(product, context) == acme.der
        except (OSError, ssl.SSLError):
            return False

    await eventually(so, within=60, what="the certificate is in force")


def session(product, acme, token):
    client = product.session("sealed", token)
    client.url = client.url.replace("http:", "https:")
    client.tls = acme.authority.client()
    return client


def invocation(product):
    return properties(product.container, PROXY, "InvocationID")["InvocationID"]


async def test_a_renewal_is_taken_under_open_streams_and_loses_none(product, acme, record_property):
    acme.issue()
    await served(product, acme)
    before, token = invocation(product), product.token("sealed")
    sessions = [await session(product, acme, token).__aenter__() for _ in range(STREAMS)]
    streams = [await one.listen() for one in sessions]
    lost = 0
    for renew in (acme.issue, acme.rewrite, acme.issue):
        await asyncio.to_thread(renew)
        await shows(product, acme)
        async with session(product, acme, token) as caller:
            await caller.text("list_changed", tool=f"t{acme.der[-4:].hex()}")
        for stream in streams:
            event = await stream.event()
            lost += (event or {}).get("method") != "notifications/tools/list_changed"
    for one, stream in zip(sessions, streams, strict=True):
        await stream.close()
        await one.drop()
    record_property("lost_streams", lost)
    assert lost == 0
    assert invocation(product) == before


async def test_a_renewal_does_not_wait_for_a_mistake_in_the_files_of_servers(product, acme):
    acme.issue()
    await served(product, acme)
    product.write("/etc/mcp-bridge/servers.json", "{ not json")
    await asyncio.to_thread(acme.issue)
    await shows(product, acme)
    await product.serve(echo("sealed"))


async def test_a_pair_that_cannot_be_used_is_told_and_changes_nothing(product, acme):
    acme.issue()
    await served(product, acme)
    context, good = acme.authority.client(), acme.der
    await asyncio.to_thread(acme.issue, days=-1)

    async def told():
        return "certificate has expired" in " ".join(
            await asyncio.to_thread(product.logs, "-t", "mcp-bridge-proxy", "-n", "20")
        )

    await eventually(told, within=60)
    assert await shown(product, context) == good
    assert product.container.run("mcp-bridge", "check").status == 65
    await asyncio.to_thread(acme.issue)
    await shows(product, acme)
    assert "counts for 0 days more" in product.container.run("mcp-bridge", "check").err


async def test_the_key_is_read_by_nobody_but_root_and_the_proxy(product, acme):
    acme.issue()
    await served(product, acme)
    shown_as = product.container.check("stat", "-c", "%U %G %a", TAKEN)
    assert shown_as.split() == ["root", "mcp-bridge", "640"]
    for user in ("nobody", "mcp-bridge-egress"):
        done = product.container.run("setpriv", f"--reuid={user}", "--clear-groups", "cat", TAKEN)
        assert done.status != 0 and "Permission denied" in done.err
    group = product.container.check("getent", "group", "mcp-bridge").strip()
    assert group.endswith(":")  # and no other user is in the group
    # Positive control: the proxy's user reads it, and not what it was made from.
    as_proxy = ("setpriv", "--reuid=mcp-bridge", "--regid=mcp-bridge", "--clear-groups", "cat")
    assert "PRIVATE KEY" in product.container.check(*as_proxy, TAKEN)
    assert product.container.run(*as_proxy, f"{LIVE}/privkey.pem").status != 0
    assert "PRIVATE KEY" not in "".join(product.logs("-n", "500"))


async def test_a_key_that_is_a_secret_of_the_host_serves_and_is_rotated_without_a_restart(
    product, acme
):
    acme.issue()
    key = product.container.check("cat", f"{LIVE}/privkey.pem")
    product.container.check("mcp-bridge", "secret", "set", "mcp-key", stdin=key)
    product.container.check("rm", f"{LIVE}/privkey.pem")
    await served(product, acme, key="mcp-key")
    before = invocation(product)
    refused = product.container.run("mcp-bridge", "secret", "rm", "mcp-key")
    assert refused.status == 64 and "in use: host.toml (tls.key)" in refused.err

    await asyncio.to_thread(acme.issue)
    key = product.container.check("cat", f"{LIVE}/privkey.pem")
    product.container.check("mcp-bridge", "secret", "rotate", "mcp-key", stdin=key)
    await shows(product, acme)
    assert invocation(product) == before
    product.write("/etc/mcp-bridge/host.toml", "")
    product.container.check("mcp-bridge", "apply")
    product.container.check("mcp-bridge", "secret", "rm", "mcp-key")


async def test_a_boot_serves_the_certificate_again(product, acme):
    acme.issue()
    await served(product, acme)
    await asyncio.to_thread(product.container.reboot)
    await shows(product, acme)
    async with session(product, acme, product.token("sealed")) as client:
        assert await client.text("echo", text="again") == "again"


async def test_the_proxys_unit_is_no_more_exposed_than_without_tls(product, acme):
    def exposure():
        text = product.container.check("systemd-analyze", "security", PROXY)
        return text.rsplit("Overall exposure level", 1)[1].split(":")[1].split()[0]

    before = exposure()
    acme.issue()
    await served(product, acme)
    assert exposure() == before


async def test_the_command_line_calls_by_tls(product, acme):
    acme.issue()
    await served(product, acme)
    token = product.token("sealed")
    words = ("mcp-bridge", "call", "sealed", "echo", '{"text": "by hand"}')
    said = product.container.check("env", f"MCP_BRIDGE_TOKEN={token}", *words)
    assert said.strip() == "by hand"


def test_systemd_loads_a_credential_at_a_start_only(product):
    """Why apply copies the certificate: a reload of the unit has the old one still."""
    container, unit = product.container, "credential-probe"
    container.check("sh", "-c", "echo old > /root/credential")
    container.check(
        *(
            "systemd-run",
            "--quiet",
            f"--unit={unit}",
            "--property=LoadCredential=x:/root/credential",
        ),
        *("--property=ExecReload=/bin/true", "sleep", "1000"),
    )
    loaded = ("cat", f"/run/credentials/{unit}.service/x")
    try:
        assert container.check(*loaded) == "old\n"
        container.check("sh", "-c", "echo new > /root/credential")
        container.check("systemctl", "reload", unit)
        assert container.check(*loaded) == "old\n"
    finally:
        container.check("systemctl", "stop", unit)
        container.check("rm", "/root/credential")
