"""Names that clients give, as names that are allowed here."""

from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.connect.imported.naming import secret_name, server_name
from autobot_mcp_bridge.model.names import ServerId, is_part, parse_instance

TEXTS = st.text(st.characters(max_codepoint=0x24F) | st.sampled_from("日本語-_. "), max_size=50)


@given(st.lists(TEXTS, max_size=8))
def test_every_name_is_allowed_and_no_two_are_one(names):
    taken = []
    for name in names:
        taken.append(server_name(name, taken))

    assert len(set(taken)) == len(names)
    assert all(ServerId("default", None, name) for name in taken)


def test_a_name_that_is_allowed_stays_and_others_stay_near():
    assert server_name("files-2", ()) == "files-2"
    assert server_name("My Files", ()) == "my-files"
    assert server_name("googleDrive", ()) == "google-drive"
    assert server_name("socket", ()) == "socket-server"
    assert server_name("files", {"files", "files-2"}) == "files-3"


@given(TEXTS)
def test_a_secrets_name_is_allowed_and_always_the_same(label):
    for instance in ("files", "acme.files", f"acme.web.{'x' * 32}"):
        server = parse_instance(instance)
        name = secret_name(server, label, lambda _name: False)
        assert is_part(name)
        assert name == secret_name(server, label, lambda _name: False)
        assert name != secret_name(parse_instance("other.files"), label, lambda _name: False)


def test_a_secrets_name_does_not_say_its_servers_name_twice():
    server = parse_instance("github")

    assert secret_name(server, "GITHUB_TOKEN", lambda _name: False) == "github-token"
    assert secret_name(server, "TOKEN", lambda _name: False) == "github-token"
    other = secret_name(server, "TOKEN", lambda name: name == "github-token")
    assert other != "github-token" and is_part(other)
