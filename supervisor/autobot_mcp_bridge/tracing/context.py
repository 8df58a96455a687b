"""Where a call belongs in a trace: W3C Trace Context, in `_meta` (SEP-414) or in HTTP headers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PARENT, STATE, BAGGAGE = "traceparent", "tracestate", "baggage"
SAMPLED = 0x01
# Version, trace, parent, flags; later versions may add more behind a dash (section 3.2.4).
_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
# What is taken of them: tracestate as section 3.3.1.5 has it, baggage as W3C Baggage section 3.3.2.
LONGEST_STATE, LONGEST_BAGGAGE = 512, 8192
LONGEST_PARENT = 128
_PLAIN = re.compile(r"[\x20-\x7e]*")


@dataclass(frozen=True, slots=True)
class Context:
    """A span elsewhere.

    Attributes:
        trace: 32 hexadecimal digits.
        span: 16 hexadecimal digits.
        sampled: whether its maker records it.
        state: what vendors have added; "" for nothing.
        baggage: what the caller sends along; "" for nothing.
    """

    trace: str
    span: str
    sampled: bool
    state: str = ""
    baggage: str = ""


def context_of(found: Mapping[str, Any]) -> Context | None:
    """Read the three members; None where there is no traceparent, or one that is none.

    A traceparent that cannot be read is as if it were not there (section 3.2), and so is a tracestate.
    """
    text = found.get(PARENT)
    if not isinstance(text, str) or len(text) > LONGEST_PARENT:
        return None
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    version, trace, span, flags, more = match.groups()
    if version == "ff" or (version == "00" and more) or not int(trace, 16) or not int(span, 16):
        return None
    return Context(
        trace,
        span,
        bool(int(flags, 16) & SAMPLED),
        _text(found.get(STATE), LONGEST_STATE),
        _text(found.get(BAGGAGE), LONGEST_BAGGAGE),
    )


def _text(value: Any, longest: int) -> str:
    good = isinstance(value, str) and len(value) <= longest and _PLAIN.fullmatch(value)
    return value if good else ""
