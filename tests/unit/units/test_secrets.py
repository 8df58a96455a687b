"""Secrets of the host without systemd: what a value may be, who uses what, what is missing."""

from threading import Barrier, Thread

import pytest

from autobot_mcp_bridge.config.errors import DataError, MissingError
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.credential import Credential
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units import credentials, rotations, secrets
from autobot_mcp_bridge.units.credentials import Origin, origin
from autobot_mcp_bridge.units.sandbox.confinement import Facts
from autobot_mcp_bridge.units.secret_uses import Use, refusal, uses_of
from autobot_mcp_bridge.units.secrets import Secrets
from autobot_mcp_bridge.units.systemctl import SystemctlError
from support.waiting import WITHIN

VARIABLE = Use("acme.files", "TOKEN", Credential(name="word"))
FILE = Use("acme.files", "KEY", Credential.model_validate({"name": "word", "as": "file"}))
FACTS = Facts(are_encrypted=frozenset({"sealed"}))


def spec(name, **entries):
    keys = {"name": name, "command": ["/bin/cat"], "credentials": entries}
    return ServerSpec.model_validate(keys)


@pytest.fixture
def places(tmp_path):
    return Places(tmp_path / "etc", tmp_path / "lib", tmp_path / "run")


@pytest.fixture
def store(places, tmp_path, monkeypatch):
    """The stores of a host whose systemd-creds turns the letters round."""
    monkeypatch.setattr(secrets, "ENCRYPT", ("rev",))
    (tmp_path / "credstore").mkdir()
    return Secrets(places, Facts(credentials=str(tmp_path / "credstore")))


def test_a_name_is_looked_for_among_the_encrypted_ones_first():
    encrypted = "/etc/mcp-bridge/credstore.encrypted/sealed"

    assert origin(Credential(name="sealed"), FACTS) == Origin("LoadCredentialEncrypted", encrypted)
    assert origin(Credential(name="open"), FACTS) == Origin("LoadCredential", "/etc/credstore/open")
    assert origin(Credential(file="/etc/x"), FACTS) == Origin("LoadCredential", "/etc/x")


@pytest.mark.parametrize("value", [b"word", b"two\nlines\n", b"x" * ((128 << 10) - 8)])
def test_what_a_variable_can_hold_is_taken(value):
    assert refusal(value, [VARIABLE, FILE]) == ""


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (b"", "the value is empty"),
        (b" \n", "the value is empty"),
        (b"x" * 1_000_001, "at most 1000000 bytes"),
        (b"a\0b", "NUL, which no variable can (environ(7)), and acme.files (TOKEN) has it as a"),
        (b"x" * (128 << 10), "too long for a variable (128 KiB, execve(2))"),
    ],
)
def test_what_no_secret_or_no_variable_can_hold_is_told_without_it(value, told):
    clause = refusal(value, [FILE, VARIABLE])

    assert told in clause and "a\0b" not in clause and "xxx" not in clause


def test_a_file_holds_any_bytes():
    assert refusal(b"\0" * 1_000_000 + b"x", [FILE]).startswith("the value is too long")
    assert refusal(b"\0x" * 400_000, [FILE]) == ""


def test_a_secret_is_stored_whole_for_root_alone_and_removed(store):
    store.put("word", b"abc", [], there=False)
    path = store.encrypted / "word"
    assert (path.read_bytes().strip(), path.stat().st_mode & 0o777) == (b"cba", 0o600)
    store.put("word", b"def", [], there=True)
    assert path.read_bytes().strip() == b"fed"
    assert [entry.name for entry in store.encrypted.iterdir()] == ["word"]

    store.remove("word")
    assert not store.has("word")
    with pytest.raises(MissingError, match="there is no secret word"):
        store.remove("word")


def test_of_two_who_set_a_new_one_at_once_the_second_is_told(store, monkeypatch):
    begun = Barrier(2)

    def encrypted(value):
        begun.wait(WITHIN)
        return value

    monkeypatch.setattr(secrets, "_encrypted", encrypted)
    told = {}

    def put(value):
        try:
            store.put("word", value, [], there=False)
        except UsageError as error:
            told[value] = str(error)

    threads = [Thread(target=put, args=(value,)) for value in (b"abc", b"def")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [*told.values()] == ["word is set; `mcp-bridge secret rotate` replaces it"]
    assert (store.encrypted / "word").read_bytes() not in told


def test_one_that_is_removed_meanwhile_is_not_replaced(store):
    with pytest.raises(UsageError, match="`mcp-bridge secret set` makes it"):
        store.put("word", b"abc", [], there=True)

    assert not (store.encrypted / "word").exists()


def test_a_refused_value_changes_nothing(store):
    store.put("word", b"abc", [], there=False)
    with pytest.raises(DataError, match=r"word: the value holds a NUL.*nothing was changed"):
        store.put("word", b"a\0b", [VARIABLE], there=True)

    assert (store.encrypted / "word").read_bytes().strip() == b"cba"


@pytest.mark.parametrize("command", ["exit 1", "echo broken >&2; exit 1", "exit 0"])
def test_an_encryption_that_fails_changes_nothing_and_is_told(store, monkeypatch, command):
    store.put("word", b"abc", [], there=False)
    monkeypatch.setattr(secrets, "ENCRYPT", ("sh", "-c", f"cat > /dev/null; {command}"))
    with pytest.raises(SystemctlError, match=r"sh: (status|broken|printed nothing)"):
        store.put("word", b"def", [], there=True)

    assert (store.encrypted / "word").read_bytes().strip() == b"cba"


def test_an_encryption_that_hangs_ends_at_its_deadline(store, monkeypatch):
    monkeypatch.setattr(secrets, "ENCRYPT", ("sleep", "60"))
    monkeypatch.setattr(secrets, "ENCRYPT_WITHIN", 0.05)
    with pytest.raises(SystemctlError, match=r"did not end within 0\.05 s"):
        store.put("word", b"def", [], there=False)


def test_all_secrets_are_listed_with_their_uses_and_what_is_missing(store):
    store.put("sealed", b"abc", [], there=False)
    (store.plain / "open").write_bytes(b"abc")
    (store.plain / "Not Ours").write_bytes(b"abc")
    specs = [spec("a", X="sealed", Y="gone"), spec("b", X="sealed", Z={"file": "/no/such"})]

    found = {each.name: each for each in store.list(specs)}

    assert {name: each.kind for name, each in found.items()} == {
        "gone": "missing",
        "open": "plain file",
        "sealed": "encrypted",
        "/no/such": "missing",
    }
    assert list(map(str, found["sealed"].uses)) == ["a (X)", "b (X)"]
    assert found["open"].uses == () and found["open"].age >= 0.0
    assert "mcp-bridge secret set gone" in found["gone"].trouble
    assert found["gone"].age is None and found["sealed"].trouble == ""


def test_the_uses_of_one_secret_are_those_of_its_name():
    specs = [spec("a", X="one", Y="two"), spec("b", X={"file": "/one"})]

    assert list(map(str, uses_of(specs, "one"))) == ["a (X)"]
    assert len(list(uses_of(specs))) == 3


def test_each_missing_secret_names_its_place_and_what_helps(tmp_path):
    (tmp_path / "there").write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "large").write_bytes(b"x" * 1_000_001)
    facts = Facts(credentials=str(tmp_path))
    stores = f"{facts.encrypted} or {tmp_path}"
    entries = {"A": "there", "B": "folder", "C": "large", "D": "gone", "E": {"file": "/no/such"}}

    assert list(credentials.missing(spec("a", **entries), facts)) == [
        f"$.credentials.B: {tmp_path}/folder: allowed is a regular file",
        f"$.credentials.C: {tmp_path}/large: allowed are at most 1000000 bytes",
        f"$.credentials.D: there is no secret gone in {stores}; run: mcp-bridge secret set gone",
        "$.credentials.E: /no: No such file or directory",
    ]


def test_the_newest_rotation_among_a_server_s_secrets_counts(tmp_path):
    one, two = spec("a", X="one", Y="two"), spec("b", X={"file": "/one"})
    assert rotations.newest(one, rotations.read(tmp_path)) == 0

    rotations.note(tmp_path, "one")
    first = rotations.newest(one, rotations.read(tmp_path))
    rotations.note(tmp_path, "two")
    rotations.note(tmp_path, "other")
    second = rotations.newest(one, rotations.read(tmp_path))
    assert 0 < first < second
    assert rotations.newest(two, rotations.read(tmp_path)) == 0

    rotations.forget(tmp_path, "two")
    assert rotations.newest(one, rotations.read(tmp_path)) == first


@pytest.mark.parametrize("text", ["", "[]", '{"a": "x"}', "\xff", "null"])
def test_a_broken_note_of_rotations_is_none(tmp_path, text):
    (tmp_path / rotations.FILE).write_text(text, encoding="latin-1")

    assert rotations.read(tmp_path) == {}


def test_a_value_is_compared_by_decrypting_and_what_cannot_be_is_another(
    store, places, monkeypatch
):
    monkeypatch.setattr(secrets, "DECRYPT", ("sh", "-c", 'rev "$0"'))
    store.put("one", b"word", (), there=False)

    assert store.holds("one", b"word") and store.holds("one", b"word\n")
    assert not store.holds("one", b"other") and not store.holds("none", b"word")
    monkeypatch.setattr(secrets, "DECRYPT", ("false",))
    assert not store.holds("one", b"word")


def test_a_change_that_came_to_nothing_is_taken_back(store, places):
    store.put("one", b"word", (), there=False)
    before, none = store.sealed("one"), store.sealed("two")
    store.put("one", b"other", (), there=True)
    store.put("two", b"new", (), there=False)

    store.put_back("one", before)
    store.put_back("two", none)

    assert [path.name for path in places.encrypted_credentials.iterdir()] == ["one"]
    assert store.sealed("one") == before
