"""Regular expressions of filters; the only module that knows RE2.

RE2 matches in a time that is linear in the text, whatever the pattern: the text is a stranger's
(SM-F24: Python's `re` has no limit). What it lacks, lookaround and backreferences, is named when a
manifest is loaded. It is imported for the first filter.
"""

from functools import lru_cache
from typing import Any, Protocol

# Bytes that one pattern's machine may take.
MAX_MEMORY = 8 << 20
MAX_PATTERN = 4096


class PatternError(Exception):
    """The pattern cannot be used; the message says what is allowed, without it."""


class Pattern(Protocol):
    def search(self, text: str) -> Any: ...
    def sub(self, replacement: str, text: str) -> str: ...


@lru_cache(maxsize=1024)
def compiled(pattern: str, *, case_insensitive: bool = False) -> Pattern:
    """The pattern, ready.

    Raises:
        PatternError: it is too long or none that RE2 knows, or RE2 is not installed.
    """
    try:
        import re2
    except ImportError:
        raise PatternError("google-re2 is not installed here; install the extra `policy`") from None
    if len(pattern) > MAX_PATTERN:
        raise PatternError(f"allowed are at most {MAX_PATTERN} characters")
    options = re2.Options()
    options.log_errors = False  # it would print the pattern
    options.max_mem = MAX_MEMORY
    options.case_sensitive = not case_insensitive
    try:
        found: Pattern = re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError):
        text = "allowed is an expression of RE2's syntax (no lookaround, no backreferences)"
        raise PatternError(text) from None
    return found


def any_of(patterns: list[tuple[str, bool]]) -> Pattern:
    """One pattern for all of them, each with whether case counts not: is there anything to look at?

    Raises:
        PatternError: together they are too large.
    """
    words = "|".join(f"(?{'i' if blind else ''}:{pattern})" for pattern, blind in patterns)
    return compiled(words)
