"""A text in the forms in which it may hide: as it is, and after each step of decoding (SM-58)."""

import base64
import binascii
from collections.abc import Iterator
from urllib.parse import unquote

# A longer decoded text is not looked at: as it stands it has been.
MAX_DECODED = 64 << 10


def forms(text: str, steps: tuple[str, ...]) -> Iterator[str]:
    """The text, then what each step makes of the one before; a step that fails is passed over."""
    yield text
    for step in steps:
        if step == "url":
            decoded = unquote(text) if "%" in text else None
        else:
            decoded = unbase64(text, url_safe=step == "urlsafe_base64")
        if decoded is not None and decoded != text:
            text = decoded
            yield text


def unbase64(text: str, *, url_safe: bool, most: int = MAX_DECODED) -> str | None:
    """The text that base64 stands for, or None: it is none, or decodes to more than `most` bytes.

    What decoders elsewhere take is taken: blanks and line ends within, padding left out.
    """
    if len(text) > most * 2:
        return None
    packed = "".join(text.split()).rstrip("=")
    if len(packed) * 3 // 4 > most:
        return None
    alphabet = b"-_" if url_safe else b"+/"
    try:
        data = base64.b64decode(packed + "=" * (-len(packed) % 4), alphabet, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data.decode("utf-8", "replace")
