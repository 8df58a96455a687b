"""Real shells, in which a line is typed with TAB, and what they make of it."""

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from support.waiting import PATIENCE

_SECONDS = 30.0 * PATIENCE  # for a shell to complete one line; it takes one
_READY = "READY>"
# The program itself answers the completion, and what would be run is told.
_TOLD = """
mcp-bridge() {
    if [ "$*" = "completion names" ]; then command mcp-bridge "$@"; else printf 'TYPED:%s\\n' "$*"; fi
}
"""
_BASH = """
bind 'set enable-bracketed-paste off' 'set bell-style none'
PS1='READ''Y>'
"""
_ZSH = """
autoload -Uz compinit && compinit -u -D
unsetopt BEEP LIST_BEEP PROMPT_SP
PS1='READ''Y>'
"""


class ShellError(Exception):
    """The shell did not get to the end of the line; the message is what it wrote."""


def typed(shell: str, script: Path, line: str, environ: dict[str, str]) -> str:
    """What the line is when it is entered; each TAB in it completes what stands before it."""
    if shell == "fish":
        return _typed_fish(script, line, environ)
    rc = script.with_suffix(f".{shell}rc")
    head = _BASH if shell == "bash" else _ZSH
    rc.write_text(f"{head}{_TOLD}\nsource {script}\n", encoding="utf-8")
    if shell == "bash":
        return _entered(["bash", "--noprofile", "--rcfile", str(rc), "-i"], line, environ)
    dot = rc.with_name("zdotdir")
    dot.mkdir(exist_ok=True)
    (dot / ".zshrc").write_text(rc.read_text(encoding="utf-8"), encoding="utf-8")
    return _entered(["zsh", "-d", "-i"], line, {**environ, "ZDOTDIR": str(dot)})


def _typed_fish(script: Path, line: str, environ: dict[str, str]) -> str:
    """With `complete -C`, which is what fish does at TAB."""
    before, *pieces = line.split("\t")
    for piece in pieces:
        found = offered_by_fish(script, [before], environ)[0]
        if len(found) == 1:
            whole, _, _ = before.rpartition(" ")
            before = f"{whole} {found[0]} "
        before = before.rstrip() + piece if piece[:1] == " " else before + piece
    return before.removeprefix("mcp-bridge ").strip()


def offered_by_fish(script: Path, lines: Sequence[str], environ: dict[str, str]) -> list[list[str]]:
    code = f"source {script}\n" + "".join(
        f"complete -C '{line}'\necho '=====' $status\n" for line in lines
    )
    out = _output(["fish", "--no-config", "-c", code], environ)
    parts = re.split(r"^===== \d+\n", out, flags=re.MULTILINE)[:-1]
    return [[row.split("\t")[0] for row in part.splitlines()] for part in parts]


def run_code(shell: str, code: str, environ: dict[str, str]) -> str:
    """What the shell prints."""
    options = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"]}[shell]
    return _output([shell, *options, "-c", code], environ)


def _output(words: Sequence[str], environ: dict[str, str]) -> str:
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environ,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise ShellError(done.stdout + done.stderr)
    return done.stdout


def _entered(words: Sequence[str], line: str, environ: dict[str, str]) -> str:
    fd, terminal = pty.openpty()
    shell = subprocess.Popen(
        ["setsid", "--ctty", *words],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**environ, "TERM": "xterm", "HISTFILE": ""},
    )
    os.close(terminal)
    try:
        written = _until(fd, _READY, "")
        os.write(fd, line.encode() + b"\n")
        written = _until(fd, "TYPED:", written)
        written = _until(fd, "\n", written.split("TYPED:", 1)[1])
        return written.split("\n", 1)[0].strip()
    finally:
        os.close(fd)  # a hangup ends the shell
        shell.wait(_SECONDS)


def _until(fd: int, wanted: str, written: str) -> str:
    """Read until that stands there."""
    by = time.monotonic() + _SECONDS
    while wanted not in written:
        left = by - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            raise ShellError(f"no {wanted!r} within {_SECONDS:.0f} s: {written[-1000:]!r}")
        written += os.read(fd, 4096).decode(errors="replace")
    return written
