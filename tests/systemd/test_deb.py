"""The Debian packages: installed, upgraded under load, removed and purged with apt, on real hosts."""

import asyncio

import pytest

from autobot_mcp_bridge.units.host import static
from lab import labs, recipe
from lab.layers import MAKE_TIMEOUT, layer
from rules.tree import ROOT
from support.containers import properties
from support.debs import Sources, package
from support.footprint import listing
from support.installed import SERVERS
from support.load import Load
from support.product import Product, echo

pytestmark = [pytest.mark.lab, pytest.mark.network]

NAME = "autobot-mcp-bridge"
PROXY = "mcp-bridge-proxy.service"
OLD, NEW = "0.1.0", "0.2.0"
NEWEST_SUITE = list(recipe.SUITES)[-1]
APT_TIMEOUT = 120.0
# Of dpkg and apt, which keep lists and logs of what they have done.
OF_APT = ("var/lib/dpkg", "var/lib/apt", "var/cache/apt", "var/cache/debconf", "var/cache/ldconfig")
SESSIONS = 8


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("debs")
    return {version: Sources(folder, version) for version in (OLD, NEW)}


@pytest.fixture(scope="module", params=recipe.SUITES)
def packages(request, lab, sources):
    """One suite's packages: of the checkout, and of a newer version."""
    kept = request.config.cache.mkdir("debs")
    found = {version: package(made, request.param, kept) for version, made in sources.items()}
    return request.param, found


class Host:
    """A bare Debian with apt, and the packages in /debs."""

    def __init__(self, container, packages):
        self.container = container
        self.product = Product(container)
        self.packages = packages
        for version, path in packages.items():
            container.copy(path, f"/debs/{version}.deb")
        container.copy(ROOT / "tests" / "servers", SERVERS)

    def apt(self, *words):
        return self.container.check(
            *("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--yes", *words),
            timeout=APT_TIMEOUT,
        )

    def install(self, version, *words):
        return self.apt("install", *words, f"/debs/{version}.deb")

    def states(self, verb, units):
        return self.container.run("systemctl", verb, *units).out.split()

    def invocation(self, unit):
        return properties(self.container, unit, "InvocationID")["InvocationID"]

    def differing(self):
        """Files that are not as the package has them; the lab's base goes without documentation."""
        lines = self.container.run("dpkg", "--verify", NAME).out.splitlines()
        left_out = ("/usr/share/doc/", "/usr/share/man/")
        return [line for line in lines if not any(path in line for path in left_out)]

    def left(self):
        """What an installation could have left, but for the package manager's own."""
        return {line for line in listing(self.container) if not line.split()[0].startswith(OF_APT)}


@pytest.fixture
def host(lab, packages):
    suite, built = packages
    container = labs.up(lab, f"deb-{suite}", suite)
    try:
        yield Host(container, built)
    finally:
        container.down()


@pytest.fixture
def installed(host):
    host.install(OLD)
    return host


async def test_an_installed_package_runs_the_proxy_and_serves_what_is_added(host):
    host.install(OLD)
    assert host.states("is-enabled", static.ENABLED) == ["enabled"] * len(static.ENABLED)
    running = [unit for unit in static.ENABLED if unit != "mcp-bridge-apply.service"]
    assert host.states("is-active", running) == ["active"] * len(running)

    names = host.container.check("dpkg", "--listfiles", NAME).split()
    assert "/usr/share/man/man1/mcp-bridge-client.1.gz" in names
    completions = "/usr/share/bash-completion/completions/mcp-bridge"
    shell = f"source {completions} && complete -p mcp-bridge"
    assert "-F _mcp_bridge" in host.container.check("bash", "-c", shell)

    added = host.product.cli("add", "echo", "--", "/usr/bin/python3", f"{SERVERS}/echo.py")
    await host.product.applied("echo")
    assert "mcpb_" in added
    entry = host.product.cli("client", "echo", "--for", "cursor")
    assert '"http://127.0.0.1:8765/t/default/s/echo/mcp"' in entry
    async with host.product.session("echo") as client:
        assert await client.text("echo", text="from a package") == "from a package"


def test_the_programs_own_install_leaves_a_packages_files_to_apt(installed):
    for command in ("install", "uninstall"):
        done = installed.container.run("mcp-bridge", command)
        assert done.status == 69
        assert f"installed by the package {NAME}: use apt" in done.err
    assert installed.differing() == []


def test_a_package_takes_the_place_of_an_installation_from_a_checkout(host):
    older = "/usr/lib/mcp-bridge/venv-0123456789ab-cpython-311"
    host.container.write(f"{older}/bin/mcp-bridge", "")
    host.container.write("/usr/lib/mcp-bridge/installed.json", "{}")
    host.container.check("ln", "-s", older, "/usr/lib/mcp-bridge/venv")

    host.install(OLD)

    assert host.container.run("ls", older).status != 0
    assert host.product.cli("--version").split()[-1] == OLD
    assert host.differing() == []


async def test_an_upgrade_and_a_rollback_under_load_fail_no_call(installed):
    names = ["one", "two"]
    await installed.product.serve(*(echo(name, timeouts={"idle": "0s"}) for name in names))
    clients = [installed.product.session(names[n % 2]) for n in range(SESSIONS)]
    for client in clients:
        await client.initialize()
    servers = [f"{NAME}@{name}.service" for name in names]
    before = [await asyncio.to_thread(installed.invocation, unit) for unit in servers]
    proxies = [await asyncio.to_thread(installed.invocation, PROXY)]

    async with Load(clients) as load:
        for version, words in ((NEW, ()), (OLD, ("--allow-downgrades",))):
            await load.more(50)
            await asyncio.to_thread(installed.install, version, *words)
            assert version in await asyncio.to_thread(installed.product.cli, "--version")
            proxies.append(await asyncio.to_thread(installed.invocation, PROXY))
            await load.more(50)

    assert load.failed == []
    assert len(set(proxies)) == len(proxies), "the proxy was not restarted"
    assert [await asyncio.to_thread(installed.invocation, unit) for unit in servers] == before
    for client in clients:
        assert await client.text("echo", text="there") == "there"
        await client.drop()
    assert installed.differing() == []
    venvs = installed.container.check("sh", "-c", "echo /usr/lib/mcp-bridge/venv-*").split()
    assert len(venvs) == 1


def test_what_a_person_has_disabled_or_masked_stays_so_at_an_upgrade(installed):
    installed.container.check("systemctl", "disable", "--now", "mcp-bridge-fetched.path", PROXY)
    installed.container.check("systemctl", "stop", "mcp-bridge-proxy.socket")
    installed.container.check("systemctl", "mask", "--now", "mcp-bridge-apply.path")

    installed.install(NEW)

    units = ("mcp-bridge-fetched.path", PROXY, "mcp-bridge-apply.path")
    assert installed.states("is-enabled", units) == ["disabled", "disabled", "masked"]
    assert installed.states("is-active", units) == ["inactive"] * 3


async def test_a_removal_keeps_what_people_made_and_a_purge_leaves_the_host_as_it_was(host):
    before = host.left()
    host.install(OLD)
    await host.product.serve(echo("files"), echo("held"))
    token = host.product.token("files")
    async with host.product.session("files", token) as client:
        await client.text("pid")
    dropin = f"/etc/systemd/system/{NAME}@files.service.d/90-own.conf"
    host.container.write(dropin, "[Service]\nNice=5\n")
    host.container.check("systemctl", "mask", f"{NAME}@held.service")

    host.apt("remove", NAME)
    assert units(host.container) == ""
    assert host.container.run("pgrep", "-f", "echo.py").out == ""
    for kept in ("/etc/mcp-bridge/servers.json", "/var/lib/mcp-bridge/accepted.json", dropin):
        host.container.check("test", "-s", kept)
    assert host.container.run("ls", "/usr/lib/mcp-bridge").status != 0

    host.install(OLD)
    await host.product.applied("files", "held")
    async with host.product.session("files", token) as client:
        assert await client.text("echo", text="again") == "again"
    assert host.states("is-enabled", [f"{NAME}@held.service"]) == ["masked"]

    host.apt("purge", NAME)
    assert sorted(host.left() ^ before) == []
    assert units(host.container, "--all") == ""
    helper = host.container.check("find", "/var/lib/systemd", "-name", "*mcp*bridge*")
    assert helper == ""


def units(container, *options):
    """What systemd knows of ours; wants and masks, which a removal keeps, are not active."""
    words = ("list-units", "--plain", "--no-legend", *options, "*mcp*bridge*")
    return container.check("systemctl", *words)


def test_lintian_finds_no_error(lab, packages):
    _, built = packages

    def make(container):
        script = "apt-get update && apt-get install --yes --no-install-recommends lintian"
        container.check("sh", "-c", script, timeout=MAKE_TIMEOUT)

    layers = [layer(lab, NEWEST_SUITE, "lintian", ["lintian"], make)]
    container = labs.up(lab, "deb-lintian", NEWEST_SUITE, layers=layers)
    try:
        container.copy(built[OLD], "/debs/package.deb")
        words = ("lintian", "--fail-on", "error", "--allow-root", "/debs/package.deb")
        done = container.run(*words, timeout=300.0)
        assert done.status == 0, done.out + done.err
    finally:
        container.down()


def test_the_same_tree_gives_the_same_bytes(packages, sources, tmp_path):
    suite, built = packages
    again = sources[OLD].build(suite, tmp_path)

    assert again.name == built[OLD].name
    assert again.read_bytes() == built[OLD].read_bytes()
