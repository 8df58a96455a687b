"""What apply has accepted comes back as it was, or not at all."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.config import accepted, refused
from autobot_mcp_bridge.config.accepted import Accepted, AcceptedServer
from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.config.source import AcceptedFile
from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.states import State
from support.configured import places_in

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n"), max_size=20)
SPECS = st.builds(
    lambda number, words, env, **keys: ServerSpec.model_validate(
        {"name": f"s{number}", "command": ["/bin/x", *words], "env": env, **keys}
    ),
    st.integers(0, 10**6),
    st.lists(WORDS, max_size=3),
    st.dictionaries(st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True), WORDS, max_size=3),
    tenant=st.sampled_from(["default", "acme"]),
    project=st.sampled_from([None, "web"]),
    limits=st.fixed_dictionaries({"cpu": st.integers(1, 800).map(lambda n: f"{n}%")}),
    timeouts=st.fixed_dictionaries({"idle": st.sampled_from(["0s", "150ms", "5m", 7.25])}),
    tools=st.fixed_dictionaries({"deny": st.lists(WORDS, max_size=2)}),
    credentials=st.fixed_dictionaries(
        {}, optional={"TOKEN": st.sampled_from(["word", {"file": "/etc/x", "as": "file"}])}
    ),
    warm=st.booleans(),
    enabled=st.booleans(),
)
SERVERS = st.builds(
    AcceptedServer,
    SPECS,
    st.sampled_from(
        [None, State.INSTALLING, State.INSTALL_FAILED, State.CREDENTIAL_MISSING, State.REFUSED]
    ),
    WORDS,
    rotated=st.sampled_from([0, 1764528371123456789]),
    refused=st.sampled_from(["", "$.cwd: allowed is a directory that exists"]),
)


@given(st.lists(SERVERS, max_size=4), st.sampled_from([1, 8765]))
def test_what_is_written_is_read_back(tmp_path_factory, servers, port):
    path = tmp_path_factory.mktemp("accepted") / "accepted.json"
    host = HostSettings.model_validate({"listen": {"port": port}})
    wanted = Accepted(host, tuple(servers), "digest")

    accepted.write(path, wanted)

    assert accepted.read(path) == wanted


def test_while_units_go_a_removed_server_is_gone_and_a_disabled_one_is_disabled():
    def servers(**enabled):
        made = [
            {"name": name, "command": ["/bin/cat"], "enabled": on} for name, on in enabled.items()
        ]
        return tuple(AcceptedServer(ServerSpec.model_validate(server)) for server in made)

    before = Accepted(servers=servers(stays=True, goes=True, rests=True))
    wanted = Accepted(servers=servers(stays=True, rests=False, comes=True))

    meanwhile = before.without(["goes", "rests"], wanted)

    assert meanwhile.servers == servers(stays=True, rests=False)


@pytest.mark.parametrize("text", [None, b""])
def test_without_content_nothing_is_accepted(tmp_path, text):
    if text is not None:
        (tmp_path / "accepted.json").write_bytes(text)

    assert accepted.read(tmp_path / "accepted.json") == Accepted()


@pytest.mark.parametrize(
    "text",
    [b"{", b"[]", b'{"version":2}', b'{"version":1,"host":{},"servers":[{}],"digest":""}', b"\xff"],
)
def test_what_apply_does_not_write_is_a_problem_and_no_configuration(tmp_path, text):
    places = places_in(tmp_path)
    places.state_dir.mkdir(parents=True, exist_ok=True)
    places.accepted.write_bytes(text)

    with pytest.raises(DataError, match="not what `mcp-bridge apply` writes"):
        accepted.read(places.accepted)
    loaded, _ = AcceptedFile(places).read()
    assert not loaded.found
    assert [problem.file for problem in loaded.problems] == [str(places.accepted)]


def test_its_mark_changes_with_it_and_with_the_tokens(tmp_path):
    places = places_in(tmp_path)
    places.state_dir.mkdir()
    source = AcceptedFile(places)
    marks = [source.fingerprint()]
    accepted.write(places.accepted, Accepted(digest="1"))
    marks.append(source.fingerprint())
    places.tokens_d.mkdir()
    marks.append(source.fingerprint())
    (places.tokens_d / "files.json").write_text("{}", encoding="utf-8")
    marks.append(source.fingerprint())

    assert len(set(marks)) == len(marks)


def test_it_holds_no_secret_and_no_token_in_clear(tmp_path):
    spec = ServerSpec.model_validate(
        {"name": "a", "command": ["/bin/x"], "tokens_sha256": ["a" * 64]}
    )
    path = tmp_path / "accepted.json"

    accepted.write(path, Accepted(servers=(AcceptedServer(spec),)))

    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["servers"][0]["spec"]["tokens_sha256"] == ["a" * 64]
    assert path.stat().st_mode & 0o7777 == 0o640


def test_what_apply_refuses_is_told_beside_what_is_in_force(tmp_path):
    places = places_in(tmp_path)
    places.state_dir.mkdir(parents=True, exist_ok=True)
    accepted.write(places.accepted, Accepted(digest="old"))
    source = AcceptedFile(places)
    assert source.refused() == ()
    before = source.fingerprint()

    refused.write(places.refused, "/etc/a.json: $.x: allowed is 1\n/etc/b.json: not JSON")

    assert source.fingerprint() != before
    assert [(problem.file, problem.allowed) for problem in source.refused()] == [
        ("/etc/a.json", "$.x: allowed is 1"),
        ("/etc/b.json", "not JSON"),
    ]
    assert source.read()[0].problems == ()
    refused.write(places.refused, "")
    assert source.refused() == ()
