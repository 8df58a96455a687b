"""What is taken for a secret, and what must not be, since a command with one is disabled."""

import pytest

from autobot_mcp_bridge.connect.imported.secrecy import is_secret, is_stand_in

SECRETS = {
    "by its name": ("GITHUB_TOKEN", "abc"),
    "by a name in camel case": ("apiKey", "q"),
    "by a name's last word": ("OPENAI_KEY", "zz"),
    "a number of few digits": ("DOOR_PIN", "1234"),
    "a name without separators": ("PGPASSWORD", "s"),
    "a name that counts, too": ("MAX_TOKEN_SECRET", "q9"),
    "GitHub's": ("X", "ghp_1234567890abcdefghij"),
    "OpenAI's": ("X", "sk-proj-abcdefgh12345678"),
    "Slack's": ("X", "xoxb-1234567890-abc"),
    "AWS' id": ("X", "AKIAIOSFODNN7EXAMPLE"),
    "Google's": ("X", "AIzaSyA1234567890abcdefghij"),
    "Telegram's": ("X", "123456789:AAabcdefghijklmnopqrstuvwxyz012345678"),
    "GitLab's": ("X", "glpat-12ab34cd56ef"),
    "a JWT": ("X", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc"),
    "a key that begins with a slash": ("AWS_SECRET_ACCESS_KEY", "/xYz12/abcDEFghi+klm/N0pQrStUv"),
    "a wallet's words": ("WALLET_MNEMONIC", "legal winner thank year"),
    "headers in JSON": ("OPENAPI_MCP_HEADERS", '{"Authorization": "Bearer x", "V": "1"}'),
    "a password without a user": ("X", "redis://:pw@host"),
    "a private key": ("X", "-----BEGIN RSA PRIVATE KEY-----\nabc"),
    "a database's URL": ("X", "postgresql://u:p@h/db"),
    "a connection string": ("X", "Server=x;Password=hunter2;"),
    "a URL's query": ("X", "https://mcp.x.com/mcp?api_key=foo"),
    "a URL's path": ("X", "https://hooks.example.com/T0/B0/abcdefghij0123456789abcd"),
    "a JSON document": ("X", '{"auth": {"apiKey": "abcd1234"}}'),
    "32 digits of hexadecimal": ("X", "0123456789abcdef0123456789abcdef"),
    "a UUID": ("X", "550e8400-e29b-41d4-a716-446655440000"),
    "a header's scheme": ("X", "Bearer x1"),
    "more than one line": ("X", "a\nb"),
    "a URL among words": ("", "curl 'https://h/x?token=a1b2' | sh"),
    "a shell's assignment": ("", "API_TOKEN=a1b2 exec server"),
}
PLAIN = {
    "a level": ("LOG_LEVEL", "info"),
    "a port": ("PORT", "8080"),
    "a count of tokens": ("MAX_TOKENS", "4096"),
    "how one authenticates": ("AUTH_MODE", "oauth"),
    "a switch": ("USE_TOKEN", "true"),
    "a path to a secret": ("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key.json"),
    "a folder of keys": ("SSH_KEYS", "~/.ssh"),
    "a host of a project's": ("X_URL", "https://abcdefghijklmnopqrst.example.co"),
    "a file with a secret": ("TOKEN_FILE", "/run/x/token"),
    "a search path": ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    "a URL": ("URL", "https://api.example.com/v1/items?lang=en"),
    "a package of npm": ("", "@modelcontextprotocol/server-filesystem@2026.8.31"),
    "a package of PyPI": ("", "mcp-server-fetch==2026.4.7"),
    "a repository": ("", "git+https://github.com/example/some-server"),
    "a directory": ("", "/srv/acme/documents"),
    "an image": ("", "ghcr.io/github/github-mcp-server:latest"),
    "an option": ("", "--allow-write"),
    "a project's name": ("project-ref", "abcdefghijklmnopqrst"),
    "a model": ("MODEL", "claude-sonnet-4-20250514"),
    "an id by its name": ("AZURE_TENANT_ID", "550e8400-e29b-41d4-a716-446655440000"),
    "a setting of npm": ("", "npm_config_update_notifier"),
    "a word with a token's first letters": ("", "sk-learn-models"),
    "a long word": ("X", "ThisIsAVeryLongCamelCaseNameWithoutDigits"),
    "nothing": ("GITHUB_TOKEN", ""),
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_known(name):
    assert is_secret(*SECRETS[name])


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_none_is_left_where_it_is(name):
    assert not is_secret(*PLAIN[name])


HOSTILE = {
    "one long word": "a" * 65536,
    "beginnings of URLs": "a:" * 32768,
    "a URL in a URL": "http://h?a=" * 6000,
    "lists in lists": "[" * 60000,
    "objects in objects": '{"a":' * 900 + "1" + "}" * 900,
    "beginnings of tokens": "sk-" * 20000,
    "beginnings of pairs": "a=" * 30000,
    "beginnings of placeholders": "${" * 30000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_value_of_an_enemy_is_looked_through_in_time_that_grows_with_it(name):
    assert is_secret("X", HOSTILE[name]) in {True, False}
    assert is_secret(HOSTILE[name], "x") in {True, False}
    assert is_stand_in(HOSTILE[name]) in {True, False}


@pytest.mark.parametrize("text", ["<your-token>", "YOUR_API_KEY", "xxxx", "your key here", "..."])
def test_a_stand_in_is_no_value(text):
    assert is_stand_in(text)


@pytest.mark.parametrize("text", ["ghp_1234567890", "mysecret", "hunter2", '{"a": 1}', "your2pw"])
def test_a_value_is_no_stand_in(text):
    assert not is_stand_in(text)
