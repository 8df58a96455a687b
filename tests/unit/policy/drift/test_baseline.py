"""What becomes of a baseline when lists are seen, and when tools are accepted."""

import json

import pytest

from autobot_mcp_bridge.config.baselines import Baseline
from autobot_mcp_bridge.policy.drift import baseline as rules
from autobot_mcp_bridge.policy.drift.baseline import Listing, accept, accepts, seal, see, state_of
from autobot_mcp_bridge.policy.drift.descriptor import MAX_NAME, described, tools_of


def tool(name, text="reads", **more):
    return {"name": name, "description": text, "inputSchema": {"type": "object"}, **more}


def listed(baseline, *tools, first=True, whole=True, at=1, package=None):
    found = tuple(tools_of({"tools": list(tools)}))
    return see(baseline, Listing(found, first, whole, at, package))


def states(baseline):
    names = baseline.accepted.keys() | baseline.differing.keys()
    return {name: state_of(baseline, name) for name in names}


def known(*tools):
    baseline = Baseline()
    listed(baseline, *tools)
    return baseline


# ---- what counts as the same descriptor ----


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Another"},
        {"description": "reads, and sends"},
        {"annotations": {"readOnlyHint": True}},
        {"inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}}},
        {"outputSchema": {"type": "object"}},
        {"_meta": {"a": 1}},
        {"icons": [{"src": "https://x.example/i.png"}]},
    ],
)
def test_every_member_of_a_descriptor_counts(change):
    before, after = described(tool("read")), described({**tool("read"), **change})

    assert before.digest != after.digest


def test_order_of_keys_and_blanks_do_not_count():
    one = json.loads('{"name": "a", "inputSchema": {"x": 1, "y": [1, 2]}}')
    other = json.loads('{"inputSchema":{"y":[1,2],"x":1},"name":"a"}')

    assert described(one) == described(other)
    assert described(one) != described({**other, "inputSchema": {"x": 1, "y": [2, 1]}})


@pytest.mark.parametrize(
    "found", [None, "a", [], {}, {"name": 1}, {"name": None}, {"name": "n" * (MAX_NAME + 1)}]
)
def test_what_has_no_name_that_could_be_kept_is_no_tool(found):
    assert described(found) is None
    assert described({"name": "n" * MAX_NAME}) is not None


# ---- lists ----


def test_the_first_whole_list_is_accepted_as_it_is():
    baseline = Baseline()

    assert listed(baseline, tool("a"), tool("b")) == (["a", "b"], [])
    assert states(baseline) == {"a": "accepted", "b": "accepted"}


def test_pages_are_accepted_until_a_whole_list_has_been_seen():
    baseline = Baseline()
    listed(baseline, tool("a"), whole=False)
    listed(baseline, tool("b"), first=False, whole=False)
    assert states(baseline) == {"a": "accepted", "b": "accepted"}

    listed(baseline, tool("a"), tool("b"))
    listed(baseline, tool("c"), first=False, whole=False)

    assert states(baseline)["c"] == "new"


def test_a_tool_that_changes_before_the_first_list_is_whole_differs_all_the_same():
    baseline = Baseline()
    listed(baseline, tool("a"), whole=False)

    assert listed(baseline, tool("a", "sends"), whole=False) == ([], ["a"])
    assert states(baseline) == {"a": "changed"}


def test_changed_and_new_tools_differ_and_the_others_stay_accepted():
    baseline = known(tool("a"), tool("b"))

    assert listed(baseline, tool("a", "sends"), tool("b"), tool("c")) == ([], ["a", "c"])
    assert states(baseline) == {"a": "changed", "b": "accepted", "c": "new"}


def test_a_difference_is_told_once_and_keeps_the_time_it_was_first_seen():
    baseline = known(tool("a"))
    listed(baseline, tool("a", "sends"), at=5)

    assert listed(baseline, tool("a", "sends"), at=9) == ([], [])
    assert baseline.differing["a"].at == 5
    assert listed(baseline, tool("a", "sends more"), at=9) == ([], ["a"])


def test_a_tool_that_is_as_accepted_again_is_accepted():
    baseline = known(tool("a"))
    listed(baseline, tool("a", "sends"))
    assert states(baseline) == {"a": "changed"}

    listed(baseline, tool("a"))

    assert states(baseline) == {"a": "accepted"}


def test_a_tool_that_is_listed_twice_differs_if_one_of_both_does():
    for both in ((tool("a"), tool("a", "sends")), (tool("a", "sends"), tool("a"))):
        baseline = known(tool("a"))

        listed(baseline, *both)

        assert states(baseline) == {"a": "changed"}


def test_a_later_page_does_not_take_back_what_an_earlier_one_has_shown():
    baseline = known(tool("a"))
    listed(baseline, tool("a", "sends"), whole=False)

    listed(baseline, tool("a"), first=False, whole=False)

    assert states(baseline) == {"a": "changed"}


def test_a_tool_that_a_whole_list_lacks_is_gone_and_comes_back_accepted():
    baseline = known(tool("a"), tool("b"))

    listed(baseline, tool("a"))
    assert states(baseline) == {"a": "accepted", "b": "gone"}

    listed(baseline, tool("a"), tool("b"))
    assert states(baseline) == {"a": "accepted", "b": "accepted"}


def test_a_tool_that_is_gone_and_comes_on_a_later_page_is_accepted():
    baseline = known(tool("a"), tool("b"))
    listed(baseline, tool("a"))

    listed(baseline, tool("b"), first=False, whole=False)

    assert states(baseline) == {"a": "accepted", "b": "accepted"}


def test_a_new_tool_that_is_gone_again_is_forgotten():
    baseline = known(tool("a"))
    listed(baseline, tool("a"), tool("b"))
    assert states(baseline)["b"] == "new"

    listed(baseline, tool("a"))

    assert states(baseline) == {"a": "accepted"}


def test_an_empty_first_list_makes_every_later_tool_new():
    baseline = known()

    listed(baseline, tool("a"))

    assert states(baseline) == {"a": "new"}


# ---- accepting ----


def test_what_is_accepted_passes_and_what_was_accepted_before_still_does():
    baseline = known(tool("a"))
    listed(baseline, tool("a", "v2"), package="x@2")
    accept(baseline, {**baseline.differing})

    assert states(baseline) == {"a": "accepted"}
    assert [seen.package for seen in baseline.accepted["a"]] == [None, "x@2"]
    for text in ("reads", "v2"):
        assert accepts(baseline, "a", described(tool("a", text)).digest)
    assert not accepts(baseline, "a", described(tool("a", "v3")).digest)


def test_only_so_many_descriptors_of_a_tool_count():
    baseline = known(tool("a", "v0"))
    for number in range(1, rules.MOST_ACCEPTED + 1):
        listed(baseline, tool("a", f"v{number}"))
        accept(baseline, {**baseline.differing})

    assert not accepts(baseline, "a", described(tool("a", "v0")).digest)
    assert accepts(baseline, "a", described(tool("a", "v1")).digest)


def test_what_a_server_lists_meanwhile_is_not_accepted_with_it():
    baseline = known(tool("a"))
    listed(baseline, tool("a", "looked at"))
    chosen = {**baseline.differing}
    listed(baseline, tool("a", "not looked at"))

    accept(baseline, chosen)

    assert states(baseline) == {"a": "changed"}
    assert accepts(baseline, "a", chosen["a"].digest)


def test_the_seal_is_another_for_other_differences():
    baseline = known(tool("a"))
    seals = {seal(baseline)}
    for tools in ([tool("a", "x")], [tool("a", "y")], [tool("a", "y"), tool("b")]):
        listed(baseline, *tools)
        seals.add(seal(baseline))

    assert len(seals) == 4
    listed(baseline, tool("a", "x"))
    assert seal(baseline) in seals


# ---- bounds ----


def test_more_tools_than_a_server_may_have_are_never_accepted(monkeypatch):
    monkeypatch.setattr(rules, "MOST_TOOLS", 3)
    baseline = known(*(tool(f"t{n}") for n in range(8)))

    assert sorted(baseline.accepted) == ["t0", "t1", "t2"]
    assert sorted(baseline.differing) == ["t3", "t4", "t5"]
    with pytest.raises(ValueError, match="at most 3 tools"):
        accept(baseline, {**baseline.differing})
    assert sorted(baseline.accepted) == ["t0", "t1", "t2"]


def test_tools_that_are_gone_make_room_for_those_that_are_accepted(monkeypatch):
    monkeypatch.setattr(rules, "MOST_TOOLS", 2)
    baseline = known(tool("a"), tool("b"))
    listed(baseline, tool("a"), tool("c"))

    accept(baseline, {**baseline.differing})

    assert states(baseline) == {"a": "accepted", "c": "accepted"}


def test_large_descriptors_are_known_by_their_digest_alone(monkeypatch):
    monkeypatch.setattr(rules, "MAX_TEXT", 200)
    monkeypatch.setattr(rules, "MAX_TEXTS", 200)
    baseline = known(tool("a"), tool("large", "x" * 200), tool("b"), tool("c"), tool("d"))

    kept = {name: seen.text is not None for name, (seen,) in baseline.accepted.items()}
    assert (kept["a"], kept["large"], kept["d"]) == (True, False, False)
    assert accepts(baseline, "large", described(tool("large", "x" * 200)).digest)
    listed(baseline, tool("large", "y" * 200), whole=False)
    assert states(baseline)["large"] == "changed"
