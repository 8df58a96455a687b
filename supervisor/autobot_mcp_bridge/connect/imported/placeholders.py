"""What a client would put into a text before it uses it: `${env:X}`, `${input:id}`, `$X`.

Nothing of the environment that the import happens to run in is put in: it is another one than the
client's, and a value from it would be written down.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from autobot_mcp_bridge.connect.imported.secrecy import names_a_secret

# Of Claude Code `${X}`, `${X:-default}`; of VS Code and Cursor `${input:x}`, `${env:X}` and names of
# folders; of Gemini CLI `${X}`, `$X`; of Continue `${{ secrets.X }}`; of Windows `%X%`, alone.
_FORM = re.compile(
    r"\$\{\{\s*(?P<double>[^{}\s]+)\s*\}\}|\$\{(?P<braces>[^{}]+)\}|"
    r"(?<![\w$])\$(?P<plain>[A-Z][A-Z0-9_]{2,})(?!\w)|^%(?P<windows>[A-Za-z_]\w*)%$"
)
_KIND = re.compile(r"(?:env|input|secrets|inputs)[:.](?=.)")
_DEFAULT = ":-"


@dataclass(frozen=True, slots=True)
class Input:
    """One of VS Code's `inputs`: what it asks a person for.

    Attributes:
        password: whether it hides what is typed.
    """

    description: str = ""
    password: bool = False
    default: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One in a text.

    Attributes:
        text: as it stands there.
        name: of the variable or input.
        default: what counts where nobody gives a value; None: nothing does.
        secret: whether what belongs there is one.
    """

    text: str
    name: str
    default: str | None = field(repr=False)
    secret: bool


@dataclass(frozen=True, slots=True)
class Resolved:
    """A text with its values put in.

    Attributes:
        missing: the placeholders that nobody has given a value for; they stand in the text still.
        secret: whether a secret belongs into it.
    """

    text: str = field(repr=False)
    missing: tuple[Placeholder, ...]
    secret: bool


class Answers:
    """The values that are known: those that a person has given, then the file's own defaults."""

    def __init__(
        self, given: Mapping[str, str] | None = None, inputs: Mapping[str, Input] | None = None
    ) -> None:
        self._given = dict(given or {})
        self._inputs = dict(inputs or {})

    def beside(self, variables: Mapping[str, str]) -> "Answers":
        """These, and an entry's own variables below them."""
        return Answers({**variables, **self._given}, self._inputs)

    def resolve(self, text: str) -> Resolved:
        """The text with what is known put in, once: what is put in is not looked at again."""
        missing: list[Placeholder] = []
        result, position, secret = "", 0, False
        for match, found in self._found(text):
            value = self._value(found)
            secret = secret or found.secret
            if value is None:
                missing.append(found)
                value = found.text
            result += text[position : match.start()] + value
            position = match.end()
        return Resolved(result + text[position:], tuple(missing), secret)

    def _found(self, text: str) -> Iterator[tuple[re.Match[str], Placeholder]]:
        for match in _FORM.finditer(text):
            inner = next(group for group in match.groups() if group is not None)
            inner, has_default, default = inner.partition(_DEFAULT)
            name = _KIND.sub("", inner, count=1)
            asked = self._inputs.get(name) if inner.startswith("input") else None
            if asked is not None:
                yield match, Placeholder(match[0], name, asked.default, _is_secret(name, asked))
            else:
                secret = inner.startswith("secrets.") or names_a_secret(name)
                yield match, Placeholder(match[0], name, default if has_default else None, secret)

    def _value(self, found: Placeholder) -> str | None:
        if found.name in self._given:
            return self._given[found.name]
        return found.default


def _is_secret(name: str, asked: Input) -> bool:
    return asked.password or names_a_secret(name)


def shown(missing: Iterable[Placeholder]) -> str:
    """The placeholders as they stand in the file."""
    return ", ".join(dict.fromkeys(each.text for each in missing))
