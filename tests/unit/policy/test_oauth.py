"""What is remembered of an access token, for how long, and whose it is."""

import time

import pytest

from autobot_mcp_bridge.model.host import OAuth
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.policy import oauth
from autobot_mcp_bridge.policy.discovery import IssuerError
from autobot_mcp_bridge.policy.jwks import Keys, KeysUnavailableError
from autobot_mcp_bridge.policy.oauth import AccessTokens, ScopeError
from autobot_mcp_bridge.policy.principals import digest_of
from support.issuer import SigningKey

ISSUER, PUBLIC = "https://id.example", "https://mcp.example"
SPEC = ServerSpec(name="files", command=("/bin/cat",))
RESOURCE = PUBLIC + SPEC.id.path
FRESH, KEPT = 600.0, 3600.0


class Host:
    """An issuer, a clock and what judges its tokens."""

    def __init__(self):
        self.key = SigningKey("ES256")
        self.keys = [self.key]
        self.now = time.time()
        self.fetched = 0
        settings = OAuth(issuer=ISSUER, leeway=0, keys_fresh=FRESH, keys_kept=KEPT)
        self._keys = Keys(self, settings, self.clock)
        self.tokens = AccessTokens(PUBLIC, settings, self._keys, self.clock)

    def clock(self):
        return self.now

    async def fetch(self):
        self.fetched += 1
        if self.keys is None:
            raise IssuerError("no answer")
        return [{k: v for k, v in key.jwk.items() if k != "d"} for key in self.keys]

    async def settle(self):
        await self._keys._asking

    def token(self, **more):
        claims = {"iss": ISSUER, "sub": "alice", "client_id": "app", "aud": RESOURCE,
                  "exp": int(time.time()) + 300, **more}  # fmt: skip
        return self.key.sign({k: v for k, v in claims.items() if v is not None})

    def resource(self, spec):
        return self.tokens.resource(spec)

    async def judge(self, token):
        return await self.tokens.judge(token, digest_of(token))


@pytest.fixture
def host():
    return Host()


@pytest.fixture
def checked(monkeypatch):
    """Every token whose signature was looked at."""
    seen = []
    real = oauth.claims_of

    def counted(token, *rest):
        seen.append(token)
        return real(token, *rest)

    monkeypatch.setattr(oauth, "claims_of", counted)
    return seen


async def test_a_signature_is_looked_at_once(host, checked):
    token = host.token()
    grants = {await host.judge(token) for _ in range(5)}
    assert len(grants) == 1
    assert checked == [token]


async def test_what_is_remembered_is_bounded(host, checked, monkeypatch):
    monkeypatch.setattr(oauth, "MAX_REMEMBERED", 2)
    first, second, third = (host.token(jti=str(n)) for n in range(3))
    for token in (first, second, first, third, first, second):
        assert await host.judge(token) is not None
    assert checked == [first, second, third, second]  # the one unused for longest went


async def test_a_token_may_last_longer_than_a_float_can_say(host):
    grant = await host.judge(host.token(exp=10**400))

    assert grant is not None
    assert grant.expires > host.now


async def test_a_remembered_token_expires(host):
    token = host.token()
    grant = await host.judge(token)
    host.now = grant.expires
    assert not host.tokens.accepts(grant, host.resource(SPEC))


async def test_a_token_of_a_key_taken_back_counts_no_more(host):
    token = host.token(exp=int(host.now + KEPT))
    grant = await host.judge(token)
    host.keys = [SigningKey("ES256")]
    host.now += FRESH + 1
    assert host.tokens.accepts(grant, host.resource(SPEC))
    await host.settle()
    assert not host.tokens.accepts(grant, host.resource(SPEC))
    assert await host.judge(token) is None


async def test_what_was_remembered_counts_no_longer_than_the_keys(host):
    token = host.token(exp=int(host.now + 2 * KEPT))
    grant = await host.judge(token)
    host.keys = None
    host.now += KEPT + 1
    with pytest.raises(KeysUnavailableError):
        await host.judge(token)
    # A session is not ended by an outage: its next request is told.
    assert host.tokens.accepts(grant, host.resource(SPEC))


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ({"jti": "x", "scope": "more"}, True),
        ({"sub": "bob"}, False),
        ({"client_id": "else"}, False),
        ({"client_id": None, "azp": "app"}, True),
        ({"sub": "alice\0app", "client_id": ""}, False),
        ({"sub": 'alice", "app'}, False),
        ({"sub": "al\ud800ice"}, False),
    ],
)
async def test_a_subject_is_a_person_at_a_client(host, other, same):
    first, second = await host.judge(host.token()), await host.judge(host.token(**other))
    assert (first.subject == second.subject) is same


async def test_a_subject_is_never_the_digest_of_a_token(host):
    grant = await host.judge(host.token())
    assert grant.subject not in (digest_of("alice"), digest_of(f'["{ISSUER}", "alice", "app"]'))


@pytest.mark.parametrize(
    "claims", [{"scope": "one two"}, {"scp": "one two"}, {"scp": ["two", "one"]}]
)
async def test_scopes_are_read_as_issuers_write_them(host, claims):
    spec = ServerSpec(name="files", command=("/bin/cat",), scopes=("one", "two"))
    grant = await host.judge(host.token(**claims))
    assert host.tokens.admit(grant, host.resource(spec)).digest == grant.subject
    less = await host.judge(host.token(scope="one"))
    with pytest.raises(ScopeError) as caught:
        host.tokens.admit(less, host.resource(spec))
    assert caught.value.needed == ("one", "two")


@pytest.mark.parametrize("token", ["", "abc", "mcpb_x", "a.b", "a.b.c.d", "ä.b.c", "a..c", "a.b."])
async def test_what_is_no_signed_token_asks_the_issuer_nothing(host, token):
    assert await host.judge(token) is None
    assert host.fetched == 0
    assert await host.judge(host.token()) is not None


async def test_reasons_in_the_log_are_few_and_hold_nothing_of_the_token(host, caplog):
    caplog.set_level("INFO")
    stranger = SigningKey("ES256", kid=host.key.kid)
    for number in range(50):
        claims = {"iss": ISSUER, "sub": f"secret-{number}", "aud": RESOURCE, "exp": host.now + 60}
        assert await host.judge(stranger.sign(claims)) is None
    assert 1 <= caplog.text.count("its signature is wrong") <= 11
    assert "secret" not in caplog.text
