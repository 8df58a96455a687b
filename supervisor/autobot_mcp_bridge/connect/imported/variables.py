"""An entry's variables: `env` here, or credentials."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from autobot_mcp_bridge.connect.imported.draft import Draft, Secret
from autobot_mcp_bridge.connect.imported.placeholders import Answers, shown
from autobot_mcp_bridge.connect.imported.secrecy import is_secret, is_stand_in, names_a_secret

_MOST = 1e18  # more digits are nobody's setting; str() refuses thousands of them
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def as_text(value: Any) -> str | None:
    """A value as the variable or word that clients make of it; None: they make none."""
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case int() | float() if abs(value) < _MOST:
            return str(value)
        case _:
            return None


def take(draft: Draft, key: str, found: Any, answers: Answers) -> None:
    """Take the variables of one key (`env`)."""
    if found is None:
        draft.left_out[key] = "it is empty"
        return
    if not isinstance(found, Mapping):
        draft.skip(f"{key}: allowed is an object of texts")
        return
    draft.became[key] = "env" if found else "nothing, it is empty"
    take_each(draft, key, found, answers)


def take_each(draft: Draft, key: str, found: Mapping[str, Any], answers: Answers) -> None:
    """Take variables, wherever they stood."""
    for name, value in found.items():
        _take(draft, f"{key}.{name}", name, value, answers)


def take_names(draft: Draft, key: str, found: Any) -> None:
    """Take variables of which the file has the names only: their values are the client's own."""
    names = [each.get("name") if isinstance(each, Mapping) else each for each in _list(found)]
    if not all(isinstance(name, str) and _NAME.fullmatch(name) for name in names):
        draft.skip(f"{key}: allowed is a list of names of variables")
        return
    if key not in draft.became:
        draft.became[key] = "env" if names else "nothing, it is empty"
    for name in filter(None, names):
        if name in draft.env or any(each.label == name for each in draft.secrets):
            continue
        _take(draft, f"{key}.{name}", name, f"${{{name}}}", Answers())


def _list(found: Any) -> Iterable[Any]:
    return found if isinstance(found, list) else [found]


def _take(draft: Draft, place: str, name: str, value: Any, answers: Answers) -> None:
    text = as_text(value)
    if text is None:
        draft.left_out[place] = "null, which takes a variable away; a server has none but its own"
        if value is not None:
            draft.skip(f"{place}: allowed is a text")
        return
    if not _NAME.fullmatch(name) or "\0" in text:
        draft.left_out[place] = "no variable can have that name or hold that value (environ(7))"
        draft.to_do.append(f"{place} could not be taken: say it to the server in another way")
        return
    resolved = answers.resolve(text)
    secret = resolved.secret or is_secret(name, resolved.text)
    if resolved.missing:
        missing = shown(resolved.missing)
        if secret or names_a_secret(name):
            rest = "" if missing == text else f"; the whole value, of which {missing} is a part"
            label = draft.keep_secret(Secret(name, None, hint=f"{missing} of the file{rest}"))
            draft.became[place] = f"credentials.{label}"
        else:
            draft.left_out[place] = f"nobody has said what {missing} is"
            draft.to_do.extend(
                f"import again with --set {each.name}=VALUE, for {place}"
                for each in resolved.missing
            )
    elif secret and is_stand_in(text):
        label = draft.keep_secret(Secret(name, None, hint="the file has none yet"))
        draft.became[place] = f"credentials.{label}"
    elif secret:
        draft.became[place] = f"credentials.{draft.keep_secret(Secret(name, resolved.text))}"
    else:
        draft.env[name] = resolved.text
        draft.became[place] = f"env.{name}"
