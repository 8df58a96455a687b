"""Taking secrets and control characters out of what a server says before anyone sees it."""

import re
from collections.abc import Iterable

REDACTED = "«redacted»"
SHORTEST = 7  # characters; shorter values (`info`, `8080`) would only make holes in the text
# Each pattern is linear with a small factor, for a server chooses the text: it begins with a fixed
# word, whose first letter is looked at alone, and a run that something must follow is matched from
# the run's beginning only. All together cost 0.2 us a character (measured).
_AFTER_WORD = re.compile(
    r"(?i)(?=[bpsta])(bearer[ \t]{1,8}|(?:passw(?:or)?d|passphrase|pwd|token"
    r"|secret(?:[_-]?(?:access[_-]?)?key)?|(?:api|access|private)[_-]?key)"
    r"(?:\\{0,3}[\"'])?[ \t]{0,4}[=:][ \t]{0,4}(?:\\{0,3}[\"'])?)"
    # In quotes to the one that closes; behind one that is itself in a JSON text to that text's end.
    r"((?<=\")(?:[^\"\\]|\\.)+|(?<=')[^']+|[^\s\"',;]+)"
)
_KEY = re.compile(
    r"(?s)(-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY[A-Z ]{0,8}-----)"
    r".+?(-----END [A-Z0-9 ]{1,48}-----|$)"
)
_TOKEN = re.compile(
    r"(?=[sgxmAeh])(?:\b(?:sk-[\w-]{8,}|gh[opsur]_\w{8,}|github_pat_\w{8,}|glpat-[\w-]{8,}|xox[a-z]-[\w-]{8,}"
    r"|mcp[bk]_[\w-]{8,}|AKIA[0-9A-Z]{12,}|hv[sbr]\.[\w-]{8,}|s\.[A-Za-z0-9]{24,})"
    r"|(?<![\w-])eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?)"
)
_LONG = re.compile(r"(?<![A-Za-z0-9+_-])[A-Za-z0-9+_-]{32,}={0,2}")
_HEX = re.compile(r"[0-9A-Fa-f]{32,}")
_PADDED = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{32,}={1,2}")
# What each of the patterns above needs at least, in lower case: looked for first, since nearly every
# text has none of it: a third of what the patterns of a narrow redactor cost (measured).
_HINTS = (
    *("bearer", "pass", "pwd", "token", "secret", "key", "eyj", "sk-", "gh", "glpat-", "xox"),
    *("mcpb_", "akia", "hvs.", "hvb.", "hvr.", "s.", "github_pat_"),
)
# Control characters could forge further log lines or speak to a terminal.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]")


class Redactor:
    """Makes a text that a server chose fit to be shown.

    Args:
        values: secrets that are known.
        guess: whether any long run of letters and digits counts as one. What a stranger prints is
            better shown short; a record of calls has to say which document was meant.
    """

    def __init__(self, values: Iterable[str] = (), *, guess: bool = True) -> None:
        # The longest first: one value may be part of another.
        self._values = sorted((v for v in set(values) if len(v) >= SHORTEST), key=len, reverse=True)
        self._guess = guess

    def __call__(self, line: str) -> str:
        line = self.secrets(line)
        if line.isprintable():
            return line
        return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", line)

    def secrets(self, text: str) -> str:
        """The text without secrets, its control characters as they are."""
        for value in self._values:
            text = text.replace(value, REDACTED)
        if self._guess or _may_hold_one(text):
            text = self._without_patterns(text)
        return text

    def lines(self, text: str) -> str:
        """A text of several lines, which stay lines."""
        return "\n".join(map(self, _KEY.sub(rf"\1{REDACTED}\2", text).split("\n")))

    def _without_patterns(self, line: str) -> str:
        line = _KEY.sub(rf"\1{REDACTED}\2", line)
        line = _AFTER_WORD.sub(rf"\1{REDACTED}", line)
        line = _TOKEN.sub(REDACTED, line)
        if self._guess:
            line = _PADDED.sub(REDACTED, line)
            return _LONG.sub(_unless_word, line)
        return _HEX.sub(REDACTED, line)


def _may_hold_one(text: str) -> bool:
    """Whether a pattern of a narrow redactor could match."""
    if len(text) < SHORTEST:
        return False
    low = text.lower()
    for hint in _HINTS:
        if hint in low:
            return True
    return len(text) >= 32 and _HEX.search(text) is not None


def _unless_word(match: re.Match[str]) -> str:
    text = match[0]
    mixed = any(c.isdigit() for c in text) and any(c.isalpha() for c in text)
    return REDACTED if mixed or _HEX.search(text) else text
