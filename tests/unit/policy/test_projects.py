"""From which project a call comes, and what it opens: every combination."""

import itertools

import pytest

from autobot_mcp_bridge.model.agents import OVERSEERS, Role
from autobot_mcp_bridge.policy.principals import Key
from autobot_mcp_bridge.policy.projects import (
    ProjectMismatchError,
    check_call,
    check_named,
    context_of,
    may_view,
)

PROJECTS = (None, "web", "shop")


def key(project=None, roles=(Role.MEMBER,)):
    return Key("a" * 64, "00000001", 1.0, "acme", project, frozenset(roles), "a1", "coder")


def outcome(function, *words):
    try:
        return function(*words)
    except ProjectMismatchError:
        return "refused"


@pytest.mark.parametrize(
    ("bound", "named", "context"),
    [
        (None, None, None),
        (None, "web", "web"),
        ("web", None, "web"),
        ("web", "web", "web"),
        ("web", "shop", "refused"),
        ("web", "", "refused"),
        ("web", "WEB", "refused"),
        ("web", "web ", "refused"),
        ("web", "we", "refused"),
        (None, "", "refused"),
        (None, "-", "refused"),
        (None, "a/b", "refused"),
        (None, "web\n", "refused"),
        (None, "x" * 33, "refused"),
    ],
)
def test_the_context_is_the_keys_or_the_headers_and_never_both_of_two(bound, named, context):
    assert outcome(context_of, key(bound), named) == context


def test_a_project_is_called_from_itself_and_the_tenants_own_from_everywhere():
    for project, context in itertools.product(PROJECTS, PROJECTS):
        opens = project is None or project == context
        assert (outcome(check_call, project, context) is None) is opens, (project, context)


def test_a_route_names_the_project_of_a_token():
    for project, named in itertools.product(PROJECTS, (*PROJECTS, "")):
        fits = named is None or project is None or project == named
        assert (outcome(check_named, project, named) is None) is fits, (project, named)


def test_overseers_see_all_projects_only_while_they_come_from_none():
    for roles in itertools.chain.from_iterable(itertools.combinations(Role, n) for n in (1, 2, 3)):
        overseer = not OVERSEERS.isdisjoint(roles)
        for project, context in itertools.product(PROJECTS, PROJECTS):
            sees = project in (None, context) or (context is None and overseer)
            assert may_view(key(roles=roles), project, context) is sees, (roles, project, context)


def test_a_refusal_says_what_to_send():
    with pytest.raises(ProjectMismatchError, match="which X-Project has to name"):
        check_call("web", None)
    with pytest.raises(ProjectMismatchError, match="another project than shop"):
        check_call("web", "shop")
    with pytest.raises(ProjectMismatchError, match="X-Project says 'shop'"):
        check_named("web", "shop")


def test_a_refusal_tells_the_callers_own_words_only_and_not_all_of_them():
    with pytest.raises(ProjectMismatchError) as caught:
        check_call("secret-project", "web")
    assert "secret-project" not in str(caught.value)
    with pytest.raises(ProjectMismatchError) as caught:
        context_of(key(), "x\r\n" * 1000)
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()
