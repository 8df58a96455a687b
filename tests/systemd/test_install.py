"""Installing and uninstalling on a real host: from a checkout, by `make install`, and back."""

import json
import subprocess

import pytest

from lab import labs, recipe
from lab.layers import MAKE_TIMEOUT
from rules.tree import ROOT
from support.containers import properties
from support.footprint import listing
from support.product import (
    CHECKOUT,
    Product,
    checkout_binds,
    installed_product,
    lay_code,
    program_layer,
)

pytestmark = pytest.mark.lab

PROXY = "mcp-bridge-proxy.service"
MANIFEST = "/usr/lib/mcp-bridge/installed.json"
# As a package manager lays files: directories that are there stay as they are.
UNPACK = "tar -C /stage -cf - usr | tar -C / -xf - --no-overwrite-dir"


@pytest.fixture(params=recipe.SUITES)
def own(request, lab):
    """An installation that the test may treat as it likes."""
    made = installed_product(lab, request.param, f"own-{request.param}", checkout_binds())
    yield made
    made.container.down()


def invocation(product):
    return properties(product.container, PROXY, "InvocationID", "ActiveState")


def edit(product, name, old, new):
    """Change a template of the installed package, as a newer version would have."""
    (path,) = product.container.check(
        "sh", "-c", f"echo /usr/lib/mcp-bridge/venv/lib/*/site-packages/*/_templates/{name}"
    ).split()
    text = product.container.check("cat", path)
    assert old in text
    product.write(path, text.replace(old, new))


def test_an_upgrade_restarts_the_proxy_only_for_what_it_uses(own):
    before = invocation(own)
    assert before["ActiveState"] == "active"

    edit(own, "ended.py", "FIRST_WAIT = 0.2", "FIRST_WAIT = 0.21")
    assert "restarting" not in own.install()
    assert "FIRST_WAIT = 0.21" in own.container.check("cat", "/usr/lib/mcp-bridge/ended.py")
    assert invocation(own) == before

    edit(own, "mcp-bridge-proxy.service", "TimeoutStopSec=30s", "TimeoutStopSec=31s")
    assert "restarting the proxy" in own.install()
    after = invocation(own)
    assert after["ActiveState"] == "active"
    assert after["InvocationID"] != before["InvocationID"]


def test_an_install_restarts_the_proxy_of_a_venv_that_something_else_has_exchanged(own):
    before = invocation(own)
    manifest = json.loads(own.container.check("cat", MANIFEST))
    own.write(MANIFEST, json.dumps({**manifest, "program": "venv-other"}))

    assert "restarting the proxy" in own.install()
    assert invocation(own)["InvocationID"] != before["InvocationID"]
    assert own.install().splitlines()[-1].endswith("nothing was changed")


def test_what_a_person_has_disabled_stays_disabled_when_it_is_installed_again(own):
    own.container.check("systemctl", "disable", "--now", "mcp-bridge-apply.path")
    edit(own, "mcp-bridge-proxy.service", "TimeoutStopSec=30s", "TimeoutStopSec=31s")
    own.install()

    state = own.container.run("systemctl", "is-enabled", "mcp-bridge-apply.path").out.strip()
    assert state == "disabled"


def make(container, *words):
    """Run the command that make would run: there is no make in the container."""
    shown = subprocess.run(
        ["make", "-n", *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    script = f"cd {CHECKOUT} && {shown.stdout.strip().removeprefix('@')}"
    return container.check("sh", "-c", script, timeout=MAKE_TIMEOUT)


def test_a_first_start_opens_the_ports_of_the_settings_and_no_others(lab):
    suite = next(iter(recipe.SUITES))
    container = labs.up(lab, "inst-ports", suite, layers=[program_layer(lab, suite)])
    try:
        # Whatever holds the usual port is not in the way.
        taken = Product(container).dial()
        taken.bind(("127.0.0.1", 8765))
        taken.listen()
        container.write("/etc/mcp-bridge/host.toml", "[listen]\nport = 8770\n")
        lay_code(container)
        Product(container).install()
        taken.close()

        listening = container.check("ss", "-Hltn")
        assert "127.0.0.1:8770" in listening
        assert "127.0.0.1:8765" not in listening
        assert properties(container, PROXY, "ActiveState") == {"ActiveState": "active"}
    finally:
        container.down()


PAGES = (
    "/usr/share/man/man1/mcp-bridge-client.1",
    "/usr/share/man/man5/mcp-bridge-servers.json.5",
    "/usr/share/bash-completion/completions/mcp-bridge",
)


@pytest.mark.network
@pytest.mark.parametrize("suite", recipe.SUITES)
async def test_make_install_and_uninstall_on_a_fresh_host_leave_it_as_it_was(lab, suite):
    container = labs.up(lab, f"inst-{suite}", suite, host_network=True, binds=checkout_binds())
    try:
        # The port is the host's here, whose own proxy may hold it.
        dropin = (
            "[Socket]\nListenStream=\nListenStream=/run/mcp-bridge-test.sock\nRemoveOnStop=yes\n"
        )
        before = listing(container)
        make(container, "install", "DESTDIR=/stage")
        assert container.run("ls", "/usr/lib/mcp-bridge").status != 0
        assert container.run("grep", "-rIl", "/stage", "/stage/usr/lib/mcp-bridge").out.split() == [
            path
            for path in container.run("grep", "-rIl", "/stage", "/stage").out.split()
            if path.endswith("direct_url.json")
        ]
        # As a package manager would: the files, and then the program's own install.
        container.check("sh", "-c", UNPACK)
        folder = "/etc/systemd/system/mcp-bridge-proxy.socket.d"
        container.write(f"{folder}/90-test.conf", dropin)
        product = Product(container)
        assert product.install().splitlines()[-1] == "installed"
        assert product.install().splitlines()[-1].endswith("nothing was changed")
        assert properties(container, PROXY, "ActiveState") == {"ActiveState": "active"}
        for page in PAGES:
            container.check("test", "-s", page)
        product.write_servers({"name": "files", "command": ["/usr/bin/mcp-bridge", "demo"]})
        await product.applied("files")
        product.token("files")
        container.check("systemctl", "start", "autobot-mcp-bridge@files.service")

        kept = product.cli("uninstall", "--keep-data")
        assert kept.splitlines()[-1] == "uninstalled"
        container.check("test", "-s", "/var/lib/mcp-bridge/tokens.d/files.json")
        container.check("sh", "-c", UNPACK)
        container.write(f"{folder}/90-test.conf", dropin)
        product.install()
        await product.applied("files")
        assert "stopping 1 server\n" in product.cli("uninstall")

        assert listing(container) ^ before == set()
        units = ("list-units", "--all", "--plain", "--no-legend", "*mcp*bridge*")
        assert container.check("systemctl", *units) == ""
    finally:
        container.down()
