"""Completion in real shells, man pages, exit statuses and --json: all as the parsers say."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from autobot_mcp_bridge.cli import pages, shells
from autobot_mcp_bridge.cli.exits import EXITS
from autobot_mcp_bridge.cli.main import COMMANDS, HIDDEN, whole_parser
from autobot_mcp_bridge.cli.tree import described
from autobot_mcp_bridge.model.errors import BridgeError
from autobot_mcp_bridge.units.host import static
from connect.terminals import offered_by_fish, run_code, typed
from rules.tree import ROOT, modules
from support.commands import run
from support.configured import SMALL, places_in, write_servers

SHELLS = ("bash", "zsh", "fish")
PROGRAM = described(whole_parser())
ALL = {command.path: command for command in PROGRAM.all()}
# What prints nothing that a program could want, or has a form of its own.
WITHOUT_JSON = {
    "serve": "a service; it writes a log",
    "egress": "a service; it writes a log",
    "demo": "an MCP server: JSON is all that it says",
    "stdio": "an MCP server: JSON is all that it says",
    "schema": "prints JSON anyway",
    "completion": "prints a shell's code",
}


@pytest.fixture
def servers(tmp_path):
    places = places_in(tmp_path)
    acme = {**SMALL, "tenant": "acme", "project": "web", "name": "files"}
    write_servers(places, {**SMALL, "name": "files"}, {**SMALL, "name": "time"}, acme)
    return places


@pytest.fixture
def environ(servers, tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {
        "PATH": path,
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "MCP_BRIDGE_CONFIG_DIR": str(servers.config_dir),
        "MCP_BRIDGE_STATE_DIR": str(servers.state_dir),
        "MCP_BRIDGE_RUNTIME_DIR": str(servers.runtime_dir),
    }


@pytest.fixture
def script(tmp_path, servers):
    """The script of a shell, as the command prints it."""

    def write(shell):
        file = tmp_path / f"completion.{shell}"
        file.write_text(run(servers, "completion", shell).out, encoding="utf-8")
        return file

    return write


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        ("tok\t", "token"),
        ("tok\tro\tti\t", "token rotate time"),
        ("stat\tac\t", "status acme.web.files"),
        ("client fi\t--fo\tcur\t--sco\tpro\t", "client files --for cursor --scope project"),
        ("--config-d\t/ et\t", "--config-dir / et"),
        ("--config-dir /x logs ti\t", "--config-dir /x logs time"),
        ("call fi\tti\t", "call files ti"),
        ("secret set ti\t", "secret set ti"),
        ("add ti\t", "add ti"),
        ("completion zs\t", "completion zsh"),
        ("call --token-file HERE/only-\tti\t", "call --token-file HERE/only-file time"),
        ("add x --cwd HERE/only-\t", "add x --cwd HERE/only-directory/"),
        ("add x -- cat HERE/only-f\t", "add x -- cat HERE/only-file"),
    ],
)
def test_a_line_is_completed_where_one_thing_only_can_follow(
    shell, line, becomes, need, script, environ, tmp_path
):
    need(shell)
    here = tmp_path / "h"
    (here / "f").mkdir(parents=True)
    (here / "d").mkdir()
    (here / "f" / "only-file").write_text("")
    (here / "d" / "only-directory").mkdir()
    kind = "d" if "--cwd" in line else "f"
    line, becomes = (text.replace("HERE", str(here / kind)) for text in (line, becomes))

    found = typed(shell, script(shell), f"mcp-bridge {line}", environ)

    assert found.rstrip("/") == becomes.rstrip("/")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_value_behind_an_equals_sign_is_completed(shell, need, script, environ):
    need(shell)

    found = typed(shell, script(shell), "mcp-bridge client files --for=cur\t", environ)

    assert found == "client files --for=cursor"


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_every_command_and_option_of_the_parsers_is_offered(shell, need, script, environ):
    need(shell)
    words = "opts[@]} ${below[@]" if shell == "zsh" else "opts} ${below"
    code = f"source {script(shell)}\n" if shell == "bash" else "compdef() { : }\n"
    code += "" if shell == "bash" else f"source {script(shell)}\n"
    for path in ALL:
        code += f"_mcp_bridge_at '{path}'\nprintf '%s ' ${{{words}}}\necho\n"

    lines = run_code(shell, code, environ).splitlines()

    for command, line in zip(ALL.values(), lines, strict=True):
        names = [name for option in command.options for name in option.names]
        names += [below.words[-1] for below in command.commands]
        offered = line.split() if shell == "bash" else re.findall(r"(?:^| )([\w-]+):", line)
        assert set(names) <= set(offered)
        if shell == "bash":
            assert set(offered) == set(names)


def test_fish_offers_every_command_and_option_of_the_parsers(need, script, environ):
    need("fish")
    lines = [f"mcp-bridge {path} --".replace("  ", " ") for path in ALL]

    for command, offered in zip(
        ALL.values(), offered_by_fish(script("fish"), lines, environ), strict=True
    ):
        names = {name for option in command.options for name in option.names if name[:2] == "--"}
        assert set(offered) == names


def test_the_names_of_servers_come_without_the_model(environ, servers):
    code = (
        "import sys; from autobot_mcp_bridge.cli.main import main; main(['completion', 'names']); "
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )

    *names, imported = done.stdout.splitlines()
    assert names == ["acme.web.files", "files", "time"]
    slow = {"pydantic", "aiohttp", "asyncio", "jinja2", "orjson"}
    assert slow & set(imported.split()) == set()


def test_a_configuration_with_mistakes_still_names_its_servers(servers):
    write_servers(servers, {**SMALL, "warm": 1}, "no server", {"name": 7}, {"name": "B"})
    (servers.servers_d / "a.json").write_text("{", encoding="utf-8")

    done = run(servers, "completion", "names")

    assert (done.status, done.out) == (0, "time\n")


def test_an_installation_lays_pages_where_it_removes_them():
    for name in pages.texts():
        path = Path("usr/share", name)
        assert any(path.match(pattern) for pattern in static.PAGES), name


def test_each_command_has_a_page_and_no_other_has(tmp_path):
    found = {name.removeprefix("man/man1/") for name in pages.texts() if "/man1/" in name}

    assert found == {"mcp-bridge.1", *(f"mcp-bridge-{name}.1" for name in COMMANDS)}
    assert not set(HIDDEN) & set(ALL)


@pytest.fixture(scope="module")
def man(tmp_path_factory):
    """The man pages, in files."""
    folder = tmp_path_factory.mktemp("man")
    found = []
    for name, text in pages.texts().items():
        if name.startswith("man/"):
            found.append(folder / Path(name).name)
            found[-1].write_text(text, encoding="utf-8")
    return found


def output(words, environ):
    done = subprocess.run(
        words, env=environ, capture_output=True, text=True, encoding="utf-8", check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_groff_and_man_have_no_warning_for_any_page(man, need, environ):
    need("groff")
    need("man")
    for page in man:
        assert output(["groff", "-ww", "-z", "-man", "-Tutf8", page], environ) == (0, "", "")
        words = ["man", "--warnings=w", "-E", "UTF-8", "-l", page]
        status, shown, said = output(words, {**environ, "MANPAGER": "cat"})
        assert (status, said) == (0, "")
        assert "EXIT STATUS" in shown or "KEYS" in shown


def test_mandoc_has_nothing_to_say_of_any_page(man, need, environ):
    need("mandoc")

    assert output(["mandoc", "-T", "lint", *man], environ) == (0, "", "")


def test_a_page_shows_every_option_and_exit_status(man, need, environ):
    need("groff")
    for page in man:
        if page.suffix != ".1":
            continue
        _, shown, _ = output(["groff", "-man", "-Tascii", "-P-cbou", page], environ)
        command = ALL[page.stem.removeprefix("mcp-bridge").removeprefix("-")]
        for one in command.all() if command.path else [command]:
            for option in one.options:
                assert all(re.search(rf"\B{name}\b", shown) for name in option.names), page
        for status, name, _ in EXITS:
            assert re.search(rf"^ +{status} +{name}", shown, re.MULTILINE), (page, status)


def test_help_shows_no_command_that_is_for_programs_only():
    text = whole_parser().format_help()

    assert "completion" in text
    assert not re.search(r"^ +pages\b", text, re.MULTILINE)


def test_every_exit_status_of_the_code_stands_in_the_table_and_the_page():
    for module in modules():
        __import__(".".join(module.relative_to(ROOT / "supervisor").with_suffix("").parts))

    def below(kind):
        return {kind, *(one for sub in kind.__subclasses__() for one in below(sub))}

    statuses = {kind.exit_code for kind in below(BridgeError) if "autobot" in kind.__module__}
    assert statuses <= {status for status, _, _ in EXITS}
    text = (ROOT / "docs/OPERATE.md").read_text(encoding="utf-8")
    rows = [
        f"| {status} | {f'`{name}`' if name else ''} | {says} |" for status, name, says in EXITS
    ]
    assert "\n".join(rows) in text


def leaves():
    return [command for command in PROGRAM.all() if not command.commands]


def test_every_command_has_json_or_a_reason_not_to():
    without = {
        command.path
        for command in leaves()
        if not any("--json" in option.names for option in command.options)
    }

    assert without <= set(WITHOUT_JSON)


def test_a_change_tells_a_program_what_it_did(servers):
    def told(*words):
        done = run(servers, *words, "--json")
        assert done.status == 0, done.err
        return json.loads(done.out)

    words = ["add", "new", "--json", "--", "true"]
    added = json.loads(run(servers, *words).out)
    assert (added["server"], added["changed"]) == ("new", True)
    assert added["token"].startswith("mcpb_")
    assert [told(verb, "new")["changed"] for verb in ("enable", "disable", "disable")] == [
        False,
        True,
        False,
    ]
    assert told("remove", "new")["changed"]
    assert told("client", "files", "--for", "cursor", "--file", "/x")["changed"] is False


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("remove", "nothing"), 66),
        (("enable", "a.b.c.d"), 64),
        (("reload",), 69),
        (("start", "files"), 69),
        (("token", "revoke", "files", "12345678"), 66),
        (("client", "nothing", "--for", "cursor"), 66),
        (("secret", "rm", "nothing"), 69),
    ],
)
def test_a_failure_has_one_form_for_programs(words, status, servers, monkeypatch):
    monkeypatch.setattr("autobot_mcp_bridge.cli.secret.has_systemd", lambda: False)
    done = run(servers, *words, "--json")
    plain = run(servers, *words)

    found = json.loads(done.out)
    assert found.keys() == {"error", "exit"}
    assert (done.status, found["exit"], plain.status) == (status, status, status)
    assert found["error"] in plain.err
    assert plain.out == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_what_a_shell_acts_on_is_quoted(shell):
    program = described(whole_parser())
    told = "it's $(touch /nowhere) `x` \\"
    strange = type(program.commands[0])(("odd",), told, "", None, (), (), ())
    text = shells.script(shell, type(program)((), "", "", None, (), (), (strange,)))

    quoted = told.replace("\\", "\\\\").replace("'", "\\'") if shell == "fish" else ""
    assert quoted in text
    assert "it's $(" not in text
