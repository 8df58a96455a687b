"""Which servers rely on what a host does not keep."""

from autobot_mcp_bridge.model.promises import Kept, Promise, broken
from autobot_mcp_bridge.model.server import ServerSpec


def spec(name, **keys):
    return ServerSpec.model_validate({"name": name, "command": ["/bin/cat"], **keys})


def lacking(*promises):
    return {each: Kept(each not in promises, "tried in vain") for each in Promise}


def told(facts, *specs):
    return dict(broken(facts, specs))


def test_a_limit_that_every_server_has_names_them_all():
    found = told(lacking(Promise.MEMORY), spec("a"), spec("b"))

    assert [*found] == [Promise.MEMORY]
    assert found[Promise.MEMORY].endswith("(tried in vain); limits.memory of a, b")


def test_what_no_server_asks_for_is_not_missed():
    facts = lacking(Promise.IO_WEIGHT, Promise.MEMORY_HIGH, Promise.CPU_WEIGHT, Promise.ADDRESSES)

    assert told(facts, spec("a")) == {}
    asks = spec("b", limits={"io_weight": 5})
    assert "limits.io_weight of b" in told(facts, spec("a"), asks)[Promise.IO_WEIGHT]


def test_an_address_filter_is_missed_by_servers_with_a_network_only():
    live, listed = spec("live", profile="npx"), spec("listed", network={"mode": "list"})
    far = ServerSpec(name="far", url="https://a.example/mcp")
    facts = lacking(Promise.ADDRESSES, Promise.NETWORK)
    found = told(facts, spec("alone"), live, listed, far)

    assert "profile of live; network.mode of listed; url of far" in found[Promise.ADDRESSES]
    assert found[Promise.NETWORK].endswith("network.mode of alone")


def test_what_every_server_has_by_its_sandbox_is_told_without_names():
    assert told(lacking(Promise.SYSCALLS), spec("a"))[Promise.SYSCALLS].endswith("(tried in vain)")
    assert told(lacking(Promise.SYSCALLS)) == {}


def test_each_promise_is_said_in_a_sentence_of_its_own():
    assert len({promise.says for promise in Promise}) == len(Promise)
