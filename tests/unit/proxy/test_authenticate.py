"""ARCHITECTURE's table of who calls, against every combination of what a request can show."""

import itertools
import time
from types import SimpleNamespace

import pytest
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from autobot_mcp_bridge.config.digests import digest_of
from autobot_mcp_bridge.config.keys import KeyRecord
from autobot_mcp_bridge.model.agents import Role
from autobot_mcp_bridge.model.errors import Cause
from autobot_mcp_bridge.model.host import Audit, HostSettings, Http
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.policy.audit.trail import AuditTrail
from autobot_mcp_bridge.policy.jwks import KeysUnavailableError
from autobot_mcp_bridge.policy.keys import KeyTable
from autobot_mcp_bridge.policy.oauth import ScopeError
from autobot_mcp_bridge.policy.principals import Principal, TokenIndex
from autobot_mcp_bridge.proxy.authenticate import Authenticator, Mismatch
from autobot_mcp_bridge.proxy.incoming import Refusal
from autobot_mcp_bridge.proxy.refusals import Reason, Refusals

KEYS = {"key": None, "web key": "web", "shop key": "shop"}  # of acme, with their projects
# Path: tenant, project, and whether there is such a server.
PATHS = {
    "/t/acme/p/web/s/files/mcp": ("acme", "web", True),
    "/t/acme/s/files/mcp": ("acme", None, True),
    "/t/acme/p/web/s/nobody/mcp": ("acme", "web", False),
    "/t/acme/s/nobody/mcp": ("acme", None, False),
    "/t/acme/files": ("acme", None, False),
    "/t/acme2/s/files/mcp": ("acme2", None, False),
    "/t/rival/s/files/mcp": ("rival", None, True),
}
SENT = ("token", "other token", *KEYS, "rival key", "expired key", "wrong")
BEARERS = (None, *SENT, "no bearer", "twice")
HEADERS = (None, *SENT, "empty", "twice")
PROJECTS = (None, "web", "shop", "")


def token_for(path):
    return f"token of {path}"


def record(text, project=None, expires=None):
    more = {"project": project, "roles": (Role.MEMBER,), "agent_id": "a1", "agent_type": "coder"}
    return KeyRecord(digest_of(text)[:8], digest_of(text), 1.0, expires, "", **more)


@pytest.fixture
def bridge():
    keys = KeyTable()
    acme = [record(text, project) for text, project in KEYS.items()]
    keys.put({"acme": [*acme, record("expired key", expires=1.0)], "rival": [record("rival key")]})
    routes = {}
    for path, (tenant, project, exists) in PATHS.items():
        if exists:
            spec = ServerSpec(tenant=tenant, project=project, name="files", command=("x",))
            known = Principal(digest_of(token_for(path)), spec.instance)
            routes[path] = SimpleNamespace(
                spec=spec, tokens=TokenIndex([known], time.time), resource=None
            )
    return SimpleNamespace(
        keys=keys, routes=routes, access=None, refusals=Refusals(AuditTrail(Audit()))
    )


def request_of(path, bearer, header, project):
    def text(what):
        if what == "token":
            return token_for(path)
        return token_for("/elsewhere") if what == "other token" else what

    sent = CIMultiDict()
    if bearer == "no bearer":
        sent.add("Authorization", "Basic dXNlcjpwYXNz")
    elif bearer is not None:
        for _ in range(2 if bearer == "twice" else 1):
            sent.add("Authorization", f"Bearer {text('key' if bearer == 'twice' else bearer)}")
    if header is not None:
        for _ in range(2 if header == "twice" else 1):
            sent.add("X-API-Key", {"twice": "key", "empty": " "}.get(header, text(header)))
    if project is not None:
        sent.add("X-Project", project)
    return SimpleNamespace(
        headers=CIMultiDictProxy(sent), rel_url=URL(path), method="POST", get={}.get
    )


def expected(path, bearer, header, project):
    """What the table says: a status, "mismatch", or who the caller is."""
    tenant, own, exists = PATHS[path]
    if bearer is None and header is None:
        return "none"
    has_token = bearer == "token" and exists
    if header is None:
        key = bearer if bearer in (*KEYS, "rival key") else None
    elif header in (*KEYS, "rival key") and (bearer is None or has_token):
        key = header
    else:
        return 401
    if key is None:
        if not has_token:
            return 401
        fits = project is None or own is None or project == own
        return ("token", None, None) if fits else "mismatch"
    if ("rival" if key == "rival key" else "acme") != tenant:
        return 401
    bound = KEYS.get(key)
    if project is not None and (project == "" or bound not in (None, project)):
        return "mismatch"
    context = project or bound
    if own not in (None, context):
        return "mismatch"
    if not exists:
        return 404
    return (key, context, "token" if bearer == "token" else None)


async def outcome(authenticator, path, request):
    try:
        served, principal = await authenticator(request)
    except Mismatch:
        return "mismatch"
    except Refusal as refusal:
        challenge = refusal.reply.headers.get("WWW-Authenticate")
        return "none" if challenge == "Bearer" else refusal.reply.status
    assert served is authenticator.bridge.routes[path]
    assert principal.instance == served.spec.instance
    if principal.key is None:
        assert principal.digest == digest_of(token_for(path))
        return ("token", principal.project, principal.token)
    texts = {digest_of(text): text for text in (*KEYS, "rival key")}
    beside = None if principal.token is None else "token"
    assert principal.token in (None, digest_of(token_for(path)))
    return (texts[principal.key.sha256], principal.project, beside)


async def test_who_calls_is_what_the_table_says_for_every_combination(bridge):
    authenticator = Authenticator(bridge, HostSettings())
    seen = set()
    for combination in itertools.product(PATHS, BEARERS, HEADERS, PROJECTS):
        found = await outcome(authenticator, combination[0], request_of(*combination))
        assert found == expected(*combination), combination
        seen.add(found if not isinstance(found, tuple) else tuple)

    assert seen == {"none", 401, 404, "mismatch", tuple}


async def test_each_refusal_is_noted_once_with_its_reason(bridge):
    authenticator = Authenticator(bridge, HostSettings())
    reasons = {
        "none": Reason.NO_CREDENTIAL,
        401: Reason.NOT_VALID,
        404: Reason.UNKNOWN,
        "mismatch": Reason.PROJECT,
    }
    for combination in itertools.product(PATHS, BEARERS, HEADERS, PROJECTS):
        before = bridge.refusals.counts.copy()
        found = await outcome(authenticator, combination[0], request_of(*combination))
        wanted = [reasons[found]] if not isinstance(found, tuple) else []
        assert list((bridge.refusals.counts - before).elements()) == wanted, combination


@pytest.mark.parametrize(("bearer", "header", "counts"), [("key", None, True), (None, "key", True), ("web key", None, True),
    ("token", None, False), ("token", "key", False), ("key", "key", False), ("wrong", None, False), (None, None, False), ("expired key", None, False)])  # fmt: skip
async def test_v1_takes_exactly_one_key(bridge, bearer, header, counts):
    authenticator = Authenticator(bridge, HostSettings())
    request = request_of("/t/acme/s/files/mcp", bearer, header, None)
    if not counts:
        with pytest.raises(Refusal) as caught:
            authenticator.holder(request)
        assert caught.value.reply.status == 401
        return
    key, context = authenticator.holder(request)
    assert (key.tenant, context) == ("acme", KEYS[bearer or header])


async def test_a_use_is_noted_of_a_key_in_its_own_tenant_only(bridge):
    authenticator = Authenticator(bridge, HostSettings())
    for path in ("/t/rival/s/files/mcp", "/t/acme2/s/files/mcp"):
        await outcome(authenticator, path, request_of(path, "key", None, None))
    assert bridge.keys.uses() == {}

    path = "/t/acme/s/files/mcp"
    await outcome(authenticator, path, request_of(path, "key", None, None))
    assert list(bridge.keys.uses()) == ["acme"]


async def test_a_use_of_v1_is_noted_as_well(bridge):
    Authenticator(bridge, HostSettings()).holder(request_of("/v1/servers", "key", None, None))

    assert list(bridge.keys.uses()) == ["acme"]


async def test_a_mismatch_is_403_where_there_is_no_id_to_answer(bridge):
    authenticator = Authenticator(bridge, HostSettings())
    with pytest.raises(Mismatch) as caught:
        await authenticator(request_of("/t/acme/p/web/s/files/mcp", "shop key", None, None))

    assert caught.value.reply.status == 403
    assert caught.value.error.cause is Cause.PROJECT_MISMATCH


class Issuer:
    """An issuer's judge of one token; `fails` is what it raises."""

    def __init__(self, fails=None):
        self.fails = fails

    async def judge(self, token, digest):
        assert digest == digest_of(token)
        if isinstance(self.fails, KeysUnavailableError):
            raise self.fails
        return "grant" if token == "wrong" else None

    def admit(self, grant, resource):
        assert (grant, resource) == ("grant", "resource")
        if self.fails is not None:
            raise self.fails
        return Principal("s" * 64, "acme.web.files")


@pytest.mark.parametrize(("fails", "status", "reason"), [(None, None, None), (KeysUnavailableError(), 503, Reason.ISSUER), (ScopeError(("mcp:acme",)), 403, Reason.SCOPE)])  # fmt: skip
async def test_what_an_issuer_says_of_a_token_is_believed_and_its_refusals_are_noted(
    bridge, fails, status, reason
):
    path = "/t/acme/p/web/s/files/mcp"
    bridge.routes[path].resource = "resource"
    bridge.access = Issuer(fails)
    authenticator = Authenticator(bridge, HostSettings(http=Http(public_url="https://mcp.example")))
    request = request_of(path, "wrong", None, None)  # no token of ours

    if status is None:
        assert (await authenticator(request))[1].digest == "s" * 64
        assert not +bridge.refusals.counts
    else:
        with pytest.raises(Refusal) as caught:
            await authenticator(request)
        assert caught.value.reply.status == status
        assert list((+bridge.refusals.counts).elements()) == [reason]
    with pytest.raises(Refusal) as caught:
        await authenticator(request_of(path, "wrong", "key", None))
    assert caught.value.reply.status == 401
