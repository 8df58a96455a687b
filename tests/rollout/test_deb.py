"""The Debian packages by site.yml: installed, left alone, exchanged under load, taken back, removed."""

import pytest

from lab import recipe
from rollout.playbooks import BIN
from rollout.served import Served
from support.containers import properties
from support.debs import Sources, package
from support.footprint import listing
from support.product import PROXY, Product
from support.proxy_unit import unit_of

pytestmark = [pytest.mark.lab, pytest.mark.network]

OLD, NEW = "0.1.0", "0.2.0"
# Of dpkg and apt, which keep lists and logs of what they have done, and of Ansible's login.
OF_OTHERS = ("var/lib/dpkg", "var/lib/apt", "var/cache/apt", "var/cache/debconf")
OF_OTHERS += ("var/cache/ldconfig", "home/admin/.ansible", "run/sudo")


class Packaged(Served):
    """The hosts, and for each version a directory with each host's package."""

    def __init__(self, lab, folder, kept):
        super().__init__(lab, folder, "pkg")
        for version in (OLD, NEW):
            sources = Sources(folder, version)
            (folder / version).mkdir()
            for name, suite in self.rollout.suites.items():
                built = package(sources, suite, kept)
                (folder / version / f"{name}.deb").symlink_to(built)
        self.take(OLD)

    def take(self, version):
        path = self.rollout.folder / version
        self.variables["mcp_bridge_host_deb"] = f"{path}/{{{{ inventory_hostname }}}}.deb"

    def versions(self):
        return [Product(one).cli("--version").split()[-1] for one in self.containers]

    def invocations(self, unit):
        return [properties(one, unit, "InvocationID") for one in self.containers]

    def left(self):
        """What an installation could have left on each host."""
        found = [listing(one) for one in self.containers]
        return [{line for line in lines if not line.startswith(OF_OTHERS)} for lines in found]


@pytest.fixture(scope="module")
def hosts(lab, need, request, tmp_path_factory):
    need(str(BIN / "ansible-playbook"))
    made = Packaged(lab, tmp_path_factory.mktemp("pkg"), request.config.cache.mkdir("debs"))
    try:
        # The first login of all leaves its marks.
        made.up("remove.yml", "site.yml")
        yield made
    finally:
        made.down()


async def test_a_package_of_each_suite_serves_a_call_and_a_second_run_changes_nothing(hosts):
    again = hosts.run("site.yml").checked()

    assert set(again.changed.values()) == {0}
    assert hosts.versions() == [OLD] * len(recipe.SUITES)
    for container in hosts.containers:
        async with hosts.session(container, hosts.token) as client:
            assert await client.text("echo", text="packaged") == "packaged"
        assert "autobot-mcp-bridge" in container.check("dpkg", "--search", "/usr/bin/mcp-bridge")


async def test_another_package_takes_its_place_under_load_and_the_older_one_again(
    hosts, record_property
):
    for version in (NEW, OLD):
        hosts.take(version)
        async with hosts.load() as load:
            servers, proxies = hosts.invocations(unit_of("echo")), hosts.invocations(PROXY)
            await hosts.run_meanwhile("site.yml", "--check", "--diff")
            assert hosts.invocations(PROXY) == proxies
            run = (await hosts.run_meanwhile("site.yml")).checked()

        record_property("calls", load.calls)
        record_property("failed_calls", len(load.failed))
        record_property("longest_seconds", round(load.longest, 1))
        assert load.failed == []
        assert all(run.changed.values())
        assert hosts.versions() == [version] * len(recipe.SUITES)
        assert hosts.invocations(unit_of("echo")) == servers
        assert all(a != b for a, b in zip(hosts.invocations(PROXY), proxies, strict=True))
        assert set(hosts.run("site.yml").checked().changed.values()) == {0}


def test_the_wheel_is_refused_where_the_package_is(hosts):
    run = hosts.run("site.yml", mcp_bridge_host_deb="")

    assert run.status != 0
    assert "The bridge is here as a Debian package" in run.output
    assert set(run.changed.values()) == {0}


def test_removing_leaves_no_unit_user_or_file(hosts):
    hosts.run("remove.yml", "--check", "--diff").checked()
    hosts.run("remove.yml").checked()

    for container, lines in zip(hosts.containers, hosts.left(), strict=True):
        assert [line for line in lines if "mcp-bridge" in line or "mcp_bridge" in line] == []
        units = ("list-units", "--all", "--plain", "--no-legend", "*mcp-bridge*", "mcpbridge*")
        assert container.check("systemctl", *units) == ""
    assert set(hosts.run("remove.yml").checked().changed.values()) == {0}
