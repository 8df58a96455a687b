"""`mcp-bridge client`: one entry in a client's file, and every other byte as it was."""

import json
import os
import shutil
import stat
import tempfile
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.cli import reaching
from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.config.tokens import TokenStore, digest_of
from autobot_mcp_bridge.connect import edit_file, edit_json, snippets
from autobot_mcp_bridge.connect.clients import CLIENTS, Scope, file_of
from autobot_mcp_bridge.connect.edit_file import edited
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.names import parse_instance
from connect.layouts import (
    CORPUS,
    JSON_EDITS,
    LINES,
    NAMES,
    PAIRS,
    TOML_EDITS,
    VALUES,
    kept,
    laid_out,
)
from support.commands import run
from support.configured import places_in, write_servers

NOBODY = 65534
SERVER = {"name": "files", "command": ["true"]}
FILES = parse_instance("files")
URL = "http://127.0.0.1:8765/t/default/s/files/mcp"
OLD_URL = "http://127.0.0.1:1/t/default/s/files/mcp"


@pytest.fixture
def places(tmp_path, monkeypatch):
    for name in ("CONFIG_DIR", "STATE_DIR", "RUNTIME_DIR", "TOKEN"):
        monkeypatch.delenv(f"MCP_BRIDGE_{name}", raising=False)
    for name in ("SUDO_UID", *(c.moved[0] for c in CLIENTS.values() if c.moved)):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = places_in(tmp_path)
    write_servers(made, SERVER, {**SERVER, "tenant": "acme", "project": "web"})
    return made


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "client" / "its file.json"
    path.parent.mkdir()
    return path


def snippet_for(name, url=URL, server=FILES):
    client = CLIENTS[name]
    entry = snippets.name_of(server)
    if client.remote is None:
        return snippets.over_stdio(client, server, entry, ["mcp-bridge", "stdio", url])
    return snippets.over_http(client, client.remote, server, entry, url)


def digests(places):
    return {record.sha256 for record in TokenStore(places.tokens_d).list("files")}


def test_kept_finds_a_byte_that_is_lost():
    assert kept("a // b\n}", "a, // b\nnew\n}")
    assert not kept("a // b\n}", "a, //b\nnew\n}")
    assert not kept("a\n}\n", "a,\nnew\n}")


@pytest.mark.parametrize(("client", "text"), CORPUS)
def test_every_other_byte_of_a_file_stays_as_it_was(client, text, places, file):
    before = text.encode()
    file.write_bytes(before)
    file.chmod(0o640)
    words = ("client", "files", "--for", client, "--file", str(file), "--write")
    more = ("--token-file", "/t") if CLIENTS[client].remote is None else ()

    done = run(places, *words, *more)

    after = file.read_bytes()
    assert (done.status, done.out) == (0, "")
    assert after != before
    if client == "vscode":
        # The question for the token is a second piece: without it, the rest is as with the others.
        letters = iter(after.decode())
        assert all(letter in letters for letter in text)
    elif text.strip("\ufeff \n{}"):
        assert kept(before, after)
    (backup,) = file.parent.glob("*.bak")
    assert backup.read_bytes() == before
    assert {stat.S_IMODE(path.stat().st_mode) for path in (file, backup)} == {0o640}
    assert ("\n" in after.replace(b"\r\n", b"").decode()) is (
        "\r\n" not in text and "\n" in after.decode()
    )

    inode = file.stat().st_ino
    again = run(places, *words, *more)
    assert again.status == 0
    assert (file.read_bytes(), file.stat().st_ino) == (after, inode)
    assert list(file.parent.glob("*.bak")) == [backup]


@pytest.mark.parametrize(("before", "after"), JSON_EDITS)
def test_an_entry_islaid_out_as_those_beside_it(before, after):
    before, after = (text.replace("URL", URL).replace("OLD", OLD_URL) for text in (before, after))

    assert edited(before, snippet_for("cursor")) == after
    assert edited(after, snippet_for("cursor")) == after


@pytest.mark.parametrize(("before", "after"), TOML_EDITS)
def test_a_table_of_toml_is_changed_within_its_lines(before, after):
    before, after = (text.replace("URL", URL).replace("OLD", OLD_URL) for text in (before, after))
    assert edited(before, snippet_for("codex")) == after
    assert edited(after, snippet_for("codex")) == after


@given(st.data())
def test_whatever_json_there_is_stays_byte_for_byte(data):
    others = data.draw(st.dictionaries(NAMES.filter(lambda n: n != "files"), VALUES, max_size=3))
    document = data.draw(st.dictionaries(NAMES, VALUES, max_size=3))
    if data.draw(st.booleans()):
        document["mcpServers"] = others
    before = data.draw(laid_out(document))
    snippet = snippet_for("gemini")

    after = edited(before, snippet)

    assert kept(before, after) or not others or not document
    assert after != before
    assert edited(after, snippet) == after
    moved = edited(after, snippet_for("gemini", OLD_URL))
    assert moved == after.replace(URL, OLD_URL)
    # Over a program and back: keys go and come, whatever stands around the entry.
    program = ["mcp-bridge", "stdio", "files"]
    other = snippets.over_stdio(CLIENTS["gemini"], FILES, "files", program)
    assert edit_json.parse(edited(edited(after, other), snippet)) == edit_json.parse(after)


@given(st.lists(LINES | PAIRS, max_size=8), st.booleans())
def test_whatever_toml_there_is_stays_byte_for_byte(lines, ended):
    text = "".join(line.format(f"k{number}") for number, line in enumerate(lines))
    before = text if ended else text.rstrip("\r\n")
    try:
        tomllib.loads(before)
    except tomllib.TOMLDecodeError:
        with pytest.raises(DataError, match="not understood"):
            edited(before, snippet_for("codex"))
        return

    after = edited(before, snippet_for("codex"))

    assert after.startswith(before) or not before.strip()
    assert edited(after, snippet_for("codex")) == after
    # One more table behind it: the edit is in the middle, and ends before it.
    longer = after + "[z]\nurl = 1\n"
    moved = edited(longer, snippet_for("codex", OLD_URL))
    assert moved == longer.replace(f'url = "{URL}"', f'url = "{OLD_URL}"')


@pytest.mark.parametrize(
    ("client", "data", "says"),
    [
        ("cursor", b"{", "line 1, column 2"),
        ("cursor", b'{"mcpServers": }', "line 1, column 16"),
        ("cursor", b"[]", "allowed is an object"),
        ("cursor", b'{"mcpServers": []}', "mcpServers is no table"),
        ("cursor", b'{"mcpServers": {"files": "x"}}', "mcpServers.files is no table"),
        ("cursor", b'{"mcpServers": {}, "mcpServers": {}}', "mcpServers stands twice"),
        ("cursor", b'{"mcpServers": {}, /* }', "not understood"),
        ("cursor", b'{"a": [,]}', "not understood"),
        ("cursor", b'{"a": NaN}', "NaN"),
        ("cursor", b'{"a": "\xff"}', "byte 7"),
        ("cursor", b'{"a": ' + b"[" * 100_000, "nested too deeply"),
        ("cursor", b'{"a": ' + b"[" * 700 + b"]" * 700 + b"}", "nested too deeply"),
        ("vscode", b'{"inputs": {}}', "inputs is no list"),
        ("codex", b"a = \n", "line 1"),
        (
            "codex",
            b'[mcp_servers]\nfiles = { url = "http://h/t/default/s/files/mcp" }\n',
            "by hand",
        ),
        ("codex", b"mcp_servers = 1\n", "mcp_servers is no table"),
        ("codex", b"mcp_servers = { a = {} }\n", "by hand"),
        ("codex", b'[mcp_servers]\nfiles.url = "' + OLD_URL.encode() + b'"\n', "by hand"),
    ],
)
def test_a_file_that_is_not_understood_is_refused_and_left(client, data, says, places, file):
    file.write_bytes(data)
    before = file.stat()

    done = run(places, "client", "files", "--for", client, "--file", str(file), "--write")

    assert done.status == DataError.exit_code
    assert str(file) in done.err
    assert says in done.err
    assert file.read_bytes() == data
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert list(file.parent.iterdir()) == [file]


def test_what_is_no_file_is_refused(places, file):
    os.mkfifo(file)

    done = run(places, "client", "files", "--for", "cursor", "--file", str(file), "--write")

    assert done.status == DataError.exit_code
    assert "allowed is a regular file" in done.err


def test_an_edit_that_would_touch_more_is_refused(monkeypatch):
    spoiled = edit_json.edit
    monkeypatch.setattr(
        edit_json, "edit", lambda text, changes: spoiled(text, changes).replace("1", "2")
    )

    with pytest.raises(DataError, match="without touching more"):
        edited('{"a": 1}', snippet_for("cursor", "http://h/t/default/s/files/mcp"))


def test_another_server_s_entry_is_left_unless_the_caller_says_so(places, file):
    text = '{"mcpServers": {"files": {"command": "npx", "args": ["-y", "x"], "timeout": 5}}}'
    file.write_text(text)
    words = ("client", "files", "--for", "cursor", "--file", str(file), "--write")

    refused = run(places, *words)
    assert refused.status == UsageError.exit_code
    assert "--as gives another name, --replace replaces it" in refused.err
    assert file.read_text() == text

    assert run(places, *words, "--as", "mine").status == 0
    entries = json.loads(file.read_text())["mcpServers"]
    assert entries["files"] == {"command": "npx", "args": ["-y", "x"], "timeout": 5}
    assert entries["mine"]["url"] == URL

    assert run(places, *words, "--replace").status == 0
    entries = json.loads(file.read_text())["mcpServers"]
    assert set(entries["files"]) == {"url", "headers", "timeout"}


def test_a_symlink_stays_and_what_it_names_is_written(places, file, tmp_path):
    real = tmp_path / "dotfiles" / "cursor.json"
    real.parent.mkdir()
    real.write_text("{}\n")
    file.symlink_to(real)

    done = run(places, "client", "files", "--for", "cursor", "--file", str(file), "--write")

    assert done.status == 0
    assert file.readlink() == real
    assert "files" in json.loads(real.read_text())["mcpServers"]
    assert [path.name for path in file.parent.glob("*.bak")] != []
    assert list(real.parent.iterdir()) == [real]


def test_a_new_file_is_the_user_s_alone_and_needs_no_backup(places, tmp_path):
    done = run(places, "client", "acme.web.files", "--for", "windsurf", "--write")

    made = tmp_path / "home/.codeium/windsurf/mcp_config.json"
    assert done.status == 0
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert list(made.parent.iterdir()) == [made]
    (entry,) = json.loads(made.read_text())["mcpServers"].items()
    assert entry[0] == "acme-web-files"
    assert entry[1]["serverUrl"].endswith("/t/acme/p/web/s/files/mcp")


def test_what_a_client_changes_meanwhile_is_not_lost(file, monkeypatch):
    file.write_text('{"a": 1}')
    back_up, pending = edit_file._back_up, ['{"a": 2}']

    def changed_meanwhile(*words):
        if pending:
            file.write_text(pending.pop())
        return back_up(*words)

    monkeypatch.setattr(edit_file, "_back_up", changed_meanwhile)
    done = edit_file.write(file, snippet_for("cursor"), Scope.USER)

    assert json.loads(file.read_text())["a"] == 2
    assert [done.backup] == list(file.parent.glob("*.bak"))
    assert json.loads(done.backup.read_text()) == {"a": 2}


@pytest.fixture
def home_of_nobody(need):
    """A home directory of another user, which that user can reach."""
    need("root")
    home = Path(tempfile.mkdtemp(prefix="mcp-bridge-home-", dir="/tmp"))
    home.chmod(0o755)
    os.chown(home, NOBODY, NOBODY)
    yield home
    shutil.rmtree(home)


def test_root_writes_a_user_s_file_as_that_user(places, home_of_nobody):
    file = home_of_nobody / ".cursor" / "mcp.json"
    token_file = home_of_nobody / "token"
    words = ("client", "files", "--for", "cursor", "--file", str(file), "--write")

    done = run(places, *words, "--token-file", str(token_file), "--new-token")

    assert done.status == 0, done.err
    assert os.geteuid() == 0
    for path, mode in ((file, 0o600), (token_file, 0o600)):
        assert (path.stat().st_uid, stat.S_IMODE(path.stat().st_mode)) == (NOBODY, mode)
    # That user does not find root's proxy by a server's name.
    assert json.loads(file.read_text())["mcpServers"]["files"]["args"][1] == URL


def test_root_does_not_write_through_a_user_s_symlink(places, home_of_nobody, tmp_path):
    of_root = tmp_path / "of-root.json"
    of_root.write_text("{}")
    file = home_of_nobody / "mcp.json"
    file.symlink_to(of_root)
    os.chown(file, NOBODY, NOBODY, follow_symlinks=False)

    done = run(places, "client", "files", "--for", "cursor", "--file", str(file), "--write")

    assert done.status == 77
    assert of_root.read_text() == "{}"

    of_root.unlink()
    own = home_of_nobody / "own.json"
    own.write_text("{}")
    os.chown(own, NOBODY, NOBODY)
    file.unlink()
    file.symlink_to(own)
    os.chown(file, NOBODY, NOBODY, follow_symlinks=False)
    words = ("client", "files", "--for", "cursor", "--file", str(file), "--write")
    assert run(places, *words).status == 0
    assert "files" in own.read_text()


def test_with_sudo_the_client_is_that_of_who_typed_it(places, monkeypatch, need):
    need("root")
    monkeypatch.setenv("SUDO_UID", str(NOBODY))

    done = run(places, "client", "files", "--for", "cursor", "--json")

    assert json.loads(done.out)["file"] == "/nonexistent/.cursor/mcp.json"


def test_no_token_stands_in_an_entry_or_is_told(places, file):
    token = run(places, "token", "new", "files", "--write-header").out.strip()
    for client in CLIENTS:
        words = ("client", "files", "--for", client, "--file", str(file))
        for more in ((), ("--write",), ("--json",)):
            done = run(places, *words, *more)
            assert done.status == 0, done.err
            assert token not in done.out + done.err
        assert token not in file.read_text()
        file.unlink()


def test_a_new_token_is_told_once_or_goes_into_the_file(places, tmp_path):
    told = run(places, "client", "files", "--for", "gemini", "--new-token", "--json")
    token = json.loads(told.out)["token"]
    assert digest_of(token) in digests(places)

    kept_in = tmp_path / "own" / "token"
    words = ("client", "files", "--for", "gemini", "--token-file", str(kept_in), "--new-token")
    stored = run(places, *words)
    assert stored.status == 0
    assert stat.S_IMODE(kept_in.stat().st_mode) == 0o600
    token = kept_in.read_text().strip()
    assert digest_of(token) in digests(places)
    assert token not in stored.out + stored.err
    assert str(kept_in) in stored.out

    # A token is stored nowhere else: one is never written over.
    assert run(places, *words).status == UsageError.exit_code
    assert kept_in.read_text().strip() == token


def test_a_refused_file_costs_no_token(places, file):
    file.write_text("{")
    words = ("client", "files", "--for", "cursor", "--file", str(file), "--write", "--new-token")

    assert run(places, *words).status == DataError.exit_code
    assert TokenStore(places.tokens_d).list("files") == []


@pytest.mark.parametrize(
    ("client", "scope", "path"),
    [
        ("claude-desktop", "user", "H/.config/Claude/claude_desktop_config.json"),
        ("claude-code", "user", "H/.claude.json"),
        ("claude-code", "project", "P/.mcp.json"),
        ("vscode", "user", "H/.config/Code/User/mcp.json"),
        ("vscode", "project", "P/.vscode/mcp.json"),
        ("cursor", "project", "P/.cursor/mcp.json"),
        ("codex", "user", "H/.codex/config.toml"),
        ("codex", "project", "P/.codex/config.toml"),
        ("gemini", "project", "P/.gemini/settings.json"),
    ],
)
def test_each_client_s_file_is_where_its_documentation_says(client, scope, path):
    home, project = Path("/H"), Path("/P")
    where = file_of(CLIENTS[client], Scope(scope), home=home, project=project, environ={})

    assert str(where) == f"/{path}"


def test_a_variable_of_the_client_moves_the_user_s_file():
    for client in CLIENTS.values():
        if client.moved:
            words = {"home": Path("/H"), "project": Path("/P")}
            moved = file_of(client, Scope.USER, **words, environ={client.moved[0]: "/M"})
            left = file_of(client, Scope.USER, **words, environ={client.moved[0]: "relative"})
            assert (moved.parts[1], left.parts[1]) == ("M", "H")


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("files", "--for", "windsurf", "--scope", "project"), 64, "--scope user"),
        (("files", "--for", "emacs"), 64, "claude-desktop"),
        (("nothing", "--for", "cursor"), 66, "there is no server nothing"),
        (("files", "--for", "cursor", "--as", "a.b"), 64, "--as: allowed are"),
        (("files", "--for", "cursor", "--url", "ftp://x"), 64, "--url: allowed is"),
        (("files", "--for", "cursor", "--url", "https://me:pw@x"), 64, "no name or password"),
        (("files", "--for", "cursor", "--url", "https://[x"), 64, "--url: allowed is"),
        (("files", "--for", "claude-desktop", "--url", "https://x"), 64, "--token-file PATH"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(words, status, says, places):
    done = run(places, "client", *words)

    assert (done.status, done.out) == (status, "")
    assert says in done.err
    assert "pw" not in done.err.replace("password", "")


@pytest.mark.parametrize("name", [name for name, each in CLIENTS.items() if each.elsewhere])
def test_the_file_of_other_systems_is_told_for_the_user_s_own_scope_alone(name, places, tmp_path):
    assert "elsewhere" in run(places, "client", "files", "--for", name).err
    others = [("--file", str(tmp_path / "f"))]
    others += [("--scope", "project")] if CLIENTS[name].project else []
    for words in others:
        done = run(places, "client", "files", "--for", name, *words)
        assert (done.status, "belongs into" in done.err) == (0, True)
        assert "elsewhere" not in done.err


def test_a_user_who_cannot_see_the_host_s_servers_is_told_how(places, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(reaching, "default_places", lambda uid: places)

    done = run(places, "client", "theirs", "--for", "cursor")

    assert done.status == 66
    assert "use sudo, or say their proxy's --url" in done.err


def test_from_another_machine_the_entry_has_that_url_and_no_server_need_be_known(places):
    done = run(places, "client", "far", "--for", "cursor", "--url", "http://mcp.example/x/")

    (entry,) = json.loads(done.out)["mcpServers"].values()
    assert entry["url"] == "http://mcp.example/x/t/default/s/far/mcp"
    assert "unencrypted" in done.err
    secure = run(places, "client", "far", "--for", "cursor", "--url", "https://mcp.example")
    assert "unencrypted" not in secure.err


def test_what_a_file_holds_is_not_told_in_an_error(places, file):
    secret = "sk-" + "4f" * 20
    for text in (f'{{"mcpServers": "{secret}"}}', f'{{"mcpServers": {{"files": "{secret}"}}}}'):
        file.write_text(text)
        done = run(places, "client", "files", "--for", "cursor", "--file", str(file), "--write")

        assert done.status == DataError.exit_code
        assert secret not in done.out + done.err
