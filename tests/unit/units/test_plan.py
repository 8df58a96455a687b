"""What apply would change: a comparison, and what becomes of a server that cannot be put to use."""

import pytest

from autobot_mcp_bridge.config.accepted import Accepted, AcceptedServer
from autobot_mcp_bridge.config.load import Loaded
from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.states import State
from autobot_mcp_bridge.units.drafts import Host
from autobot_mcp_bridge.units.packages.job import InstallError
from autobot_mcp_bridge.units.packages.specs import parse_command
from autobot_mcp_bridge.units.plan import plan


def spec(name, *command, **keys):
    return ServerSpec.model_validate({"name": name, "command": command or ("/bin/cat",), **keys})


def loaded(*specs):
    return Loaded(specs, HostSettings(), (), "digest")


def resolve(found):
    argv = found.command
    if argv[0] == "npx":
        return parse_command(argv)
    if argv[0] == "nowhere":
        raise InstallError("nowhere: no such program")
    return Command(argv)


def planned(*specs, there=(), before=(), **host):
    return plan(loaded(*specs), Host(resolve, **host), Accepted(servers=tuple(before)), dict(there))


def test_what_is_new_changed_and_gone_is_told_and_the_rest_left_alone():
    before = planned(spec("kept"), spec("changed"), spec("gone")).texts

    after = planned(
        spec("kept"), spec("changed", warm=True, limits={"memory": "1G"}), spec("new"), there=before
    )

    assert after.added == ("new",)
    assert after.changed == ("changed",)
    assert after.removed == ("gone",)
    assert "MemoryMax=1073741824" in after.texts["changed"]
    assert after.left_out == ()


def test_the_same_configuration_changes_nothing():
    before = planned(spec("a"), spec("b")).texts

    assert not planned(spec("b"), spec("a"), there=before).has_units


def test_what_only_the_proxy_has_to_know_changes_no_unit():
    before = planned(spec("a")).texts

    after = planned(spec("a", tools={"deny": ["rm"]}, timeouts={"call": "5s"}), there=before)

    assert not after.has_units
    assert after.accepted.servers[0].spec.tools.deny == ("rm",)


def test_a_package_that_is_missing_is_installing_and_keeps_the_units_it_has():
    server = spec("files", "npx", "-y", "@modelcontextprotocol/server-filesystem@1.0.0")

    fresh, upgraded = planned(server), planned(server, there={"files": "the old version's"})

    assert fresh.accepted.servers[0].state is State.INSTALLING
    assert [package.label for package in fresh.missing] == [
        "@modelcontextprotocol/server-filesystem@1.0.0"
    ]
    assert not fresh.has_units
    assert not upgraded.has_units


def test_a_program_that_is_not_there_is_its_servers_state_and_no_failure():
    result = planned(spec("bad", "nowhere"), spec("good"))

    assert result.added == ("good",)
    states = {server.spec.instance: server for server in result.accepted.servers}
    assert states["bad"].state is State.INSTALL_FAILED
    assert "no such program" in states["bad"].why


def test_a_missing_secret_is_its_servers_state_and_its_units_are_made():
    specs = spec("lacks", credentials={"A": "one", "B": "two"}), spec("whole")
    result = planned(*specs, missing_secrets=gone, rotations={"two": 7})

    assert result.added == ("lacks", "whole")
    lacks, whole = result.accepted.servers
    assert (lacks.state, lacks.why) == (State.CREDENTIAL_MISSING, "A: gone; B: gone")
    assert (lacks.rotated, whole.state, whole.rotated) == (7, None, 0)
    assert result.left_out == ()


def gone(found):
    return [f"{name}: gone" for name in found.credentials]


def test_a_disabled_server_has_no_units_and_is_known_all_the_same():
    before = planned(spec("a")).texts

    result = planned(spec("a", enabled=False), there=before)

    assert result.removed == ("a",)
    assert [server.spec.instance for server in result.accepted.servers] == ["a"]


# ---- a server that cannot be put to use ----


def lacks(found):
    """The host: below /gone there is nothing."""
    return [f"$.paths.read[0]: {path}" for path in found.paths.read if path.startswith("/gone")]


def over(servers):
    """The judge: who has the internet is over its bar."""
    return {
        found.instance: "$.max_exposure: its unit has 9"
        for found, text in servers
        if found.max_exposure is not None and "IPAddressAllow" in text
    }


GONE, INTERNET = {"read": ["/gone/here"]}, {"mode": "internet"}


def judged(*specs, there=(), before=(), **host):
    return planned(*specs, there=there, before=before, refusals=lacks, over=over, **host)


def served(result, name):
    (found,) = (server for server in result.accepted.servers if server.spec.instance == name)
    return found


def test_a_new_server_that_this_host_cannot_give_what_it_asks_for_is_left_out_alone():
    result = judged(spec("bad", paths=GONE), spec("good"))

    assert (result.added, result.texts.keys()) == (("good",), {"good"})
    bad = served(result, "bad")
    assert (bad.state, bad.why) == (State.REFUSED, "$.paths.read[0]: /gone/here")
    assert result.left_out == (bad,)
    assert served(result, "good") == AcceptedServer(spec("good"), argv=("/bin/cat",))


def test_what_was_in_force_of_it_before_stays_and_what_else_changes_comes_into_force():
    first = judged(spec("a", env={"A": "old"}), spec("b"))
    there, before = first.texts, first.accepted.servers

    second = judged(
        spec("a", env={"A": "new"}, paths=GONE),
        spec("b", env={"B": "new"}),
        there=there,
        before=before,
    )

    assert (second.changed, second.removed) == (("b",), ())
    kept = served(second, "a")
    assert (kept.spec, kept.state) == (before[0].spec, None)
    assert kept.refused == "$.paths.read[0]: /gone/here"

    third = judged(
        spec("a", env={"A": "new"}), spec("b"), there=there, before=second.accepted.servers
    )
    assert third.changed == ("a",)
    assert third.left_out == ()


def test_what_stays_is_made_anew_where_the_host_makes_units_otherwise_now():
    first = judged(spec("a"))

    second = judged(
        spec("a", paths=GONE), there={"a": "an older release's"}, before=first.accepted.servers
    )

    assert second.changed == ("a",)
    assert second.texts == first.texts


def test_what_is_in_force_and_lacks_something_now_keeps_its_unit():
    server = spec("a", paths=GONE)
    first = planned(server)

    second = judged(server, there=first.texts, before=first.accepted.servers)

    assert not second.has_units
    assert served(second, "a").state is None
    assert served(second, "a").refused == "$.paths.read[0]: /gone/here"


def test_what_stays_waits_for_its_secret_as_any_other():
    first = judged(spec("a", credentials={"A": "one"}))

    second = judged(
        spec("a", credentials={"A": "one"}, paths=GONE),
        there=first.texts,
        before=first.accepted.servers,
        missing_secrets=gone,
    )

    kept = served(second, "a")
    assert (kept.state, kept.why) == (State.CREDENTIAL_MISSING, "A: gone")
    assert kept.refused


def test_a_server_over_its_bar_is_left_out_and_the_one_within_it_stays():
    new = judged(spec("a", max_exposure=1, network=INTERNET), spec("b", network=INTERNET))
    assert served(new, "a").state is State.REFUSED
    assert new.added == ("b",)

    first = judged(spec("a", max_exposure=1))
    second = judged(
        spec("a", max_exposure=1, network=INTERNET),
        there=first.texts,
        before=first.accepted.servers,
    )
    assert served(second, "a").spec.network.mode == "none"
    assert served(second, "a").refused == "$.max_exposure: its unit has 9"


@pytest.mark.parametrize("what", ["bar", "root"])
def test_what_may_not_be_started_any_more_does_not_stay_in_force(what):
    server = spec("a", max_exposure=1, network=INTERNET)
    first = planned(server)
    changed = server if what == "bar" else spec("a", paths=GONE)

    second = judged(
        changed,
        there=first.texts,
        before=first.accepted.servers,
        distrusted=lambda found: what == "root" and found == server,
    )

    left = served(second, "a")
    assert (left.state, left.spec) == (State.REFUSED, changed)
    assert not second.has_units  # what runs goes on, and nothing is started


@pytest.mark.parametrize(
    "before",
    [
        AcceptedServer(spec("a", enabled=False)),
        AcceptedServer(spec("a"), State.INSTALL_FAILED, "no such program"),
        AcceptedServer(spec("a"), State.REFUSED, "no such user", refused="no such user"),
    ],
)
def test_what_could_not_be_started_before_is_nothing_to_stay_in_force(before):
    result = judged(spec("a", paths=GONE), there={"a": "some unit"}, before=[before])

    assert served(result, "a").state is State.REFUSED


def test_a_package_of_a_server_that_is_left_out_is_not_installed():
    words = ("npx", "-y", "@modelcontextprotocol/server-filesystem@1.0.0")

    result = judged(spec("a", *words, paths=GONE), spec("b", *words))
    assert [package.name for package in result.missing] == [
        "@modelcontextprotocol/server-filesystem"
    ]
    assert judged(spec("a", *words, paths=GONE)).missing == ()


def test_all_that_no_unit_can_carry_is_told_with_its_place_and_of_its_server_alone():
    result = planned(
        spec("a", "/bin/x", "\ufdd0", env={"A": "\ufdd0"}),
        spec("b", "/bin/x", env={"A": "\ufdd0"}),
        spec("c"),
    )

    assert result.added == ("c",)
    told = {server.spec.instance: server.refused for server in result.left_out}
    assert told.keys() == {"a", "b"}
    assert "$.command[1]" in told["a"] and "$.env.A" in told["a"]
    assert told["b"].startswith("$.env.A: ")
