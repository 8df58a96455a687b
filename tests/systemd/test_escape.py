"""What stands in a unit arrives byte for byte, or was refused: asked of real systemd, in batches.

One unit shows dozens of values, since a start costs much more than a word.
"""

import re
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from autobot_mcp_bridge.units import escape
from support.handed import take
from support.installed import instances, spec_of

pytestmark = pytest.mark.lab

# A batch is one start of a unit; the same batches at each run, and none made smaller: that would
# take hundreds of starts.
BATCHES = settings(max_examples=6, derandomize=True, database=None, phases=[Phase.generate])
REFUSED = "cannot|allowed|ends"
UNIT = "lab-escape.service"
OUT = "/run/lab-escape.out"
CHARACTERS = st.characters(max_codepoint=0x24F) | st.sampled_from(
    "%$\"'\\{};:@-+!=#~ \t\r\n\x01\x1b\x7f\x85\xa0\u2028\u200b\u202e\ufeff\ufffd\ufffe\ufdd0€😀\U0001ffff"
)
SPECIAL = (
    *("", " ", "\t", " a  b ", "%", "%%", "%h", "%i", "%{", "$", "$$", "$HOME", "${HOME}", "a${HOME}b"),
    *("'", '"', "'a", '"a b"', "\\", "a\\", "\\\\", "\\x41", "\\n", "\\;", ";", "; ;", "#", "=", "a=b"),
    *("@x", "-x", ":x", "+x", "!x", "!!x", "|x", "--", "~", "/", "x" * 100_000, "é" * 40_000),
    *("\x01", "\x1b[31m", "\x7f", "a\nExecStart=/bin/false", "a\\\nb", "\r", "\ufffe", "\ud800"),
)  # fmt: skip
TEXTS = st.sampled_from(SPECIAL) | st.text(CHARACTERS, max_size=12)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


def is_carried(text, *, control=True):
    """What can be refused, told in another way than the code does."""
    codes = [ord(character) for character in text]
    carried = all(
        code != 0
        and not 0xD800 <= code < 0xE000
        and not 0xFDD0 <= code <= 0xFDEF
        and code & 0xFFFE != 0xFFFE
        for code in codes
    )
    return carried and (control or all(c == 9 or (c >= 32 and c != 127) for c in codes))


def carried(function, texts):
    """The pairs of a text and what the function makes of it; what it must refuse is left out."""
    found = []
    for text in texts:
        if is_carried(text):
            found.append((text, function(text)))
        else:
            with pytest.raises(ValueError, match=REFUSED):
                function(text)
    return found


def shown(container, *lines):
    """Run a oneshot unit with these lines and return what it writes."""
    text = ["[Service]", "Type=oneshot", f"StandardOutput=append:{OUT}", *lines, ""]
    container.write(f"/etc/systemd/system/{UNIT}", "\n".join(text))
    container.check("sh", "-c", f": > {OUT}; systemctl daemon-reload; systemctl start {UNIT}")
    return Path(f"/proc/{container.state().leader}/root{OUT}").read_bytes()


@BATCHES
@given(st.lists(TEXTS, min_size=60, max_size=120))
def test_a_word_arrives_as_it_is(container, texts):
    found = carried(escape.word, texts)
    lines = [
        'ExecStart=:/usr/bin/printf "%%s\\\\0" ' + " ".join(word for _, word in found[n : n + 10])
        for n in range(0, len(found), 10)
    ]

    got = shown(container, *lines)

    assert got.split(b"\0")[:-1] == [text.encode() for text, _ in found]


def test_each_special_word_arrives_as_it_is(container):
    found = carried(escape.word, SPECIAL)
    lines = [f'ExecStart=:/usr/bin/printf "%%s\\\\0" {word}' for _, word in found]

    assert shown(container, *lines).split(b"\0")[:-1] == [text.encode() for text, _ in found]


@BATCHES
@given(st.lists(TEXTS, min_size=60, max_size=120))
def test_a_variable_arrives_as_it_is(container, texts):
    found = carried(lambda text: escape.assignment("V", text), [*SPECIAL, *texts])
    names = [f"MCP_{number}" for number in range(len(found))]
    lines = [
        "Environment=" + escape.assignment(name, text)
        for name, (text, _) in zip(names, found, strict=True)
    ]

    # 100,000 bytes a piece would be more than execve(2) takes.
    kept = [
        (n, t, line) for n, (t, _), line in zip(names, found, lines, strict=True) if len(t) < 99
    ]
    got = shown(container, *(line for *_, line in kept), "ExecStart=/bin/cat /proc/self/environ")

    variables = dict(pair.split(b"=", 1) for pair in got.split(b"\0") if pair)
    assert {name: variables.get(name.encode()) for name, _, _ in kept} == {
        name: text.encode() for name, text, _ in kept
    }


def test_the_longest_word_and_variable_arrive_and_longer_ones_are_refused(container):
    longest = "é" + "x" * (escape.MOST_STRING - 2)
    variable = longest[: -len("V=")]
    lines = [
        f'ExecStart=:/usr/bin/printf "%%s\\\\0" {escape.word(longest)}',
        f"Environment={escape.assignment('V', variable)}",
        "ExecStart=/bin/cat /proc/self/environ",
    ]

    parts = shown(container, *lines).split(b"\0")

    assert parts[0] == longest.encode()
    assert f"V={variable}".encode() in parts
    for function in (escape.word, lambda text: escape.assignment("V", text)):
        with pytest.raises(ValueError, match="131071 bytes"):
            function(longest + "x")


@pytest.mark.parametrize("text", ["\ufffe", "\ufdd0", "\U0001ffff"])
def test_a_noncharacter_in_a_variable_would_be_lost(container, text):
    coded = "".join(f"\\x{byte:02x}" for byte in text.encode())
    lines = (f'Environment="MCP_BAD=a{coded}"', "Environment=MCP_GOOD=a")
    got = shown(container, *lines, "ExecStart=/bin/cat /proc/self/environ")

    assert b"MCP_GOOD=a" in got
    assert b"MCP_BAD" not in got


def test_a_noncharacter_in_a_word_would_make_the_unit_unreadable(container):
    start = "ExecStart=:/usr/bin/printf \\xef\\xbf\\xbe"
    assert shown(container, start) == b"\xef\xbf\xbe"

    assert container.run("systemctl", "show", "--property=ExecStart", UNIT).status != 0
    shown(container, "ExecStart=:/usr/bin/printf a")
    assert container.run("systemctl", "show", "--property=ExecStart", UNIT).status == 0


FOLDERS = st.text(CHARACTERS, min_size=1, max_size=12) | st.sampled_from(
    ("%h", "a b", " a", "$HOME", "'a", '"a"', "a\\", "\\", "-a", "+a", "~", "é", "a;b", "#", "a,b", "a=b")
)  # fmt: skip


def is_path(text):
    return (
        is_carried(text, control=False) and not {*"\t/:'\"\\"} & {*text} and text not in {".", ".."}
    )


@BATCHES
@given(st.sets(FOLDERS, min_size=20, max_size=40))
def test_a_path_is_the_one_that_is_bound(container, names):
    kept = [name for name in sorted(names) if is_path(name)]
    for name in names - {*kept}:
        if "/" not in name:
            with pytest.raises(ValueError, match=REFUSED):
                escape.bound(f"/srv/lab-paths/{name}")
    laid = "import os,sys;[os.makedirs('/srv/lab-paths/'+n,exist_ok=True) for n in sys.stdin.read().split('\\0')]"
    container.check("python3", "-c", laid, stdin="\0".join(["left out", *kept]))
    lines = [f"BindPaths={escape.bound(f'/srv/lab-paths/{name}')}" for name in kept]

    got = shown(
        container,
        "TemporaryFileSystem=/srv/lab-paths",
        *lines,
        "ExecStart=/usr/bin/find /srv/lab-paths -mindepth 1 -print0",
    )

    found = {part.decode().removeprefix("/srv/lab-paths/") for part in got.split(b"\0") if part}
    assert found == {*kept}


@pytest.mark.parametrize("name", ["a b", "%h", '"q"', "a'", "a\\b", "$HOME", "é", "a:b", "-", "a;"])
def test_a_working_directory_is_the_one_that_was_named(container, name):
    folder = f"/srv/lab-places/{name}"
    container.check("mkdir", "-p", folder)

    got = shown(container, f"WorkingDirectory={escape.value(folder)}", "ExecStart=/bin/pwd")

    assert got.decode() == f"{folder}\n"


@pytest.mark.parametrize("name", ["a ", "a\\", "a\t", "\x01", "..", "a//b", "\ufffe"])
def test_a_working_directory_that_no_unit_can_name_is_refused(name):
    with pytest.raises(ValueError, match=REFUSED):
        escape.value(f"/srv/{name}")


# A server that shows its words and its variables as they came.
PROBE = "import os;[os.write(1,open('/proc/self/'+n,'rb').read()+b'\\0') for n in ('cmdline','environ')]"
SHOW = ("/usr/bin/python3", "-I", "-S", "-c", PROBE)
PLAIN = TEXTS.filter(lambda text: len(text) < 5000 and not re.search("[\0\n]", text))


@settings(BATCHES, max_examples=2)
@given(
    st.lists(
        st.tuples(st.lists(PLAIN, max_size=6), st.dictionaries(NAMES, PLAIN, max_size=6)),
        min_size=8,
        max_size=8,
    )
)
def test_a_server_gets_the_words_and_variables_of_its_definition(installed, cases):
    given = []
    for words, variables in cases:
        kept = {name: text for name, text in variables.items() if is_carried(text)}
        kept |= {"PATH": "/usr/bin", "HOME": "/", "LANG": "C"}
        given.append(([word for word in words if is_carried(word)], kept))
    specs = [
        spec_of(f"case-{number}", *SHOW, *words, env=variables)
        for number, (words, variables) in enumerate(given)
    ]

    with instances(installed, specs) as made:
        connections = [one.connect() for one in made]
        got = []
        for connection in connections:
            with take(connection) as handed:
                assert handed.rest() == b""
                got.append(handed.read())

    for (words, variables), spec, data in zip(given, specs, got, strict=True):
        expected = b"".join(word.encode() + b"\0" for word in (*SHOW, *words)) + b"\0"
        assert data.startswith(expected)
        found = dict(pair.split(b"=", 1) for pair in data[len(expected) :].split(b"\0") if pair)
        cache = f"/var/cache/mcp-bridge/default/-/{spec.name}"
        assert found == {
            name.encode(): value.encode()
            for name, value in {
                "MCP_INSTANCE": spec.instance,
                "PYTHONUNBUFFERED": "1",
                **dict.fromkeys(("USER", "LOGNAME"), spec.id.unit_user),
                "XDG_CACHE_HOME": cache,
                **variables,
            }.items()
        }
