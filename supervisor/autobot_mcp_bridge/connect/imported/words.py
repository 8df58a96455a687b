"""A command's words, and the secrets among them.

A secret in a word can become nothing here that keeps it one. Whoever may log in can read
/proc/PID/cmdline of every process (`ProtectProc=` hides others from the server, not the server from
others), `systemctl status` prints it, and the journal stores it with each line as `_CMDLINE=`
(systemd.journal-fields(7)). So nothing puts it back: the server stays disabled until it gets the
secret in another way, and has it as a variable.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from autobot_mcp_bridge.connect.imported.draft import Draft, Secret
from autobot_mcp_bridge.connect.imported.placeholders import Answers, Resolved, shown
from autobot_mcp_bridge.connect.imported.secrecy import is_secret, names_a_secret

_ASSIGNMENT = re.compile(r"(-{0,2}[A-Za-z_][\w.-]*)=(.*)", re.DOTALL)
_OPTION = re.compile(r"--?[A-Za-z][\w.-]*")
_HEADER_OPTIONS = frozenset({"-H", "--header", "--headers"})
_HEADER = re.compile(r"([A-Za-z0-9-]+)\s*:\s*(.+)", re.DOTALL)
# A commit is no secret, however random it looks.
_COMMIT = re.compile(r"(?<=[@#])[0-9a-f]{7,64}\b|sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Hidden:
    """A word's part that is a secret: all that stands behind `before`."""

    before: str
    value: str = field(repr=False)
    label: str


def header_of(text: str) -> tuple[str, str] | None:
    """`Name: value`, as curl and mcp-remote take it."""
    match = _HEADER.fullmatch(text)
    return (match[1], match[2]) if match else None


def hidden_in(words: Sequence[str], index: int) -> Hidden | None:
    """The secret in one word of a command, seen with the word before it."""
    word, before = words[index], words[index - 1] if index else ""
    if match := _ASSIGNMENT.fullmatch(word):
        name, value = match[1], match[2]
        start = word[: match.start(2)]
    elif _OPTION.fullmatch(before) and not word.startswith("-"):
        name, value, start = before, word, ""
    else:
        name, value, start = "", word, ""
    if name in _HEADER_OPTIONS and (pair := header_of(value)):
        if not is_secret(*pair):
            return None
        return Hidden(start + value[: len(value) - len(pair[1])], pair[1], pair[0])
    name = name.lstrip("-")
    if is_secret(name, _COMMIT.sub("", value)):
        return Hidden(start, value, name if names_a_secret(name) else f"argument-{index}")
    return None


def take(draft: Draft, words: Sequence[str], answers: Answers) -> None:
    """Take a command's words; where a secret stood, stands where it has gone."""
    resolved = [answers.resolve(word) for word in words]
    texts = [each.text for each in resolved]
    for index, each in enumerate(resolved):
        hidden = hidden_in(texts, index) if index else None
        if hidden is None and each.missing and _wants_secret(texts, index, each):
            start = each.text.find(each.missing[0].text)
            hidden = Hidden(each.text[:start], each.text[start:], each.missing[0].name)
        if hidden is None:
            draft.command.append(each.text)
            draft.to_do.extend(
                f"import again with --set {one.name}=VALUE, for its command" for one in each.missing
            )
        else:
            draft.command.append(hidden.before + _moved(draft, hidden, each, words[index - 1]))


def _wants_secret(texts: Sequence[str], index: int, resolved: Resolved) -> bool:
    return resolved.secret or names_a_secret(texts[index - 1] if index else "")


def _moved(draft: Draft, hidden: Hidden, resolved: Resolved, before: str) -> str:
    value = None if resolved.missing else hidden.value
    hint = f"{shown(resolved.missing)} of the file" if resolved.missing else ""
    name = variable_name(hidden.label)
    known = next((each for each in draft.secrets if each.value == value and value), None)
    label = known.label if known else draft.keep_secret(Secret(name, value, hint=hint))
    option = (hidden.before or before).rstrip("=: ")
    place = f"behind {json.dumps(option)}" if option.startswith("-") else "among its words"
    draft.to_do.append(
        f"its command has a secret {place}, where every user of the host could read it: "
        f"it is the variable {label} now; edit the command so that the server takes it from there"
    )
    return f"<{label}>"


def variable_name(label: str) -> str:
    """A label as the name of a variable: `--api-key` is API_KEY."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", label).strip("_").upper()
    return name if name and not name[0].isdigit() else f"_{name}"
