"""JSON as editors write it: comments and a comma before a closing bracket, blanked out in place."""

import re

# A comma is one too many before a closing bracket; a string is taken whole, so that neither of
# these is looked for within. Possessive: a text without an end costs one pass.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[^"/,]++|/(?![/*])|,', re.DOTALL)
_BLANK = re.compile(r"[ \t\r\n]*+")
_LINE, _BLOCK, _BLOCK_END = "//", "/*", "*/"


def plain_json(text: str) -> str:
    """The text as JSON, every other character where it was: line and column of a mistake stay.

    What is no JSON with comments is left as it is, for the parser to complain about. Linear.
    """
    kept: list[str] = []
    comma: int | None = None  # where in `kept` the comma stands that nothing has followed yet
    position = 0
    while position < len(text):
        end = _comment_end(text, position)
        if end is not None:
            kept.append("".join(c if c in "\r\n" else " " for c in text[position:end]))
            position = end
            continue
        match = _TOKEN.match(text, position)
        if match is None:  # a string or a comment without an end
            kept.append(text[position:])
            break
        part = match[0]
        position = match.end()
        if part == ",":
            comma = len(kept)
        elif comma is not None and (rest := _BLANK.sub("", part, count=1)):
            if rest[0] in "]}":
                kept[comma] = " "
            comma = None
        kept.append(part)
    return "".join(kept)


def _comment_end(text: str, position: int) -> int | None:
    """Where the comment ends that begins there; None: none does, or it has no end."""
    if text.startswith(_LINE, position):
        end = text.find("\n", position)
        return len(text) if end < 0 else end
    if text.startswith(_BLOCK, position):
        end = text.find(_BLOCK_END, position + len(_BLOCK))
        return None if end < 0 else end + len(_BLOCK_END)
    return None
