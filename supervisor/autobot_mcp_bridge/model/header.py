"""One entry of `headers`: what an upstream is sent with every request.

The short form, a text, is no secret; the long one names a secret, whose text stands nowhere but in
the unit's credentials and in the program that sends it.
"""

import re
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from autobot_mcp_bridge.model.credential import NAME, Credential
from autobot_mcp_bridge.model.names import PART_IN_WORDS

# A token of RFC 9110 section 5.6.2 would allow more; what proxies drop helps nobody.
HEADER = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
# One line of ASCII, not with a blank at an end (RFC 9110 section 5.5).
TEXT = r"^([\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?)?$"
PREFIX = r"^[\x20-\x7e]{0,64}$"
KEYS = ("credential", "prefix")
# What the program sets itself, or what would change what a message is.
TAKEN = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "last-event-id",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_MCP = re.compile(r"mcp-", re.IGNORECASE)


class Header(BaseModel):
    """A header's text, or where it comes from.

    Attributes:
        text: as it is sent.
        credential: a secret's name, instead of a text.
        prefix: stands before the secret, such as `Bearer ` with its blank.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    text: Annotated[str, Field(pattern=TEXT)] | None = None
    credential: Annotated[str, Field(pattern=NAME)] | None = None
    prefix: Annotated[str, Field(pattern=PREFIX)] = ""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.text is None) == (self.credential is None):
            raise ValueError("allowed is a text, or an object with credential")
        return self

    @model_serializer
    def _as_configured(self) -> str | dict[str, str]:
        if self.text is not None:
            return self.text
        found = {"credential": str(self.credential)}
        return {**found, "prefix": self.prefix} if self.prefix else found


def is_taken(name: str) -> bool:
    """Whether the program sends that header itself."""
    return name.lower() in TAKEN or _MCP.match(name) is not None


def variable(name: str) -> str:
    """What the launcher calls the path of a header's secret; one for each name."""
    return "MCP_HEADER_" + name.upper().replace("-", "_")


def credential(header: Header) -> Credential:
    """The secret, as the units of systemd load it: a file, whose path alone is told."""
    return Credential.model_validate({"name": header.credential, "as": "file"})


def _from_text(value: object) -> object:
    match value:
        case str() if re.fullmatch(TEXT, value):
            return {"text": value}
        case str():
            raise ValueError(f"allowed is {PATTERNS[TEXT]}")
        case dict() if value.keys() <= {*KEYS}:
            return value
        case dict():
            raise ValueError(f"allowed are the keys {', '.join(KEYS)}")
        case Header():
            return value
    raise ValueError("allowed is a text, or an object with credential")


_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "pattern": TEXT},
        {
            "type": "object",
            "properties": {
                "credential": {"type": "string", "pattern": NAME, "description": "of a secret"},
                "prefix": {
                    "type": "string",
                    "pattern": PREFIX,
                    "description": "before it, such as Bearer and a blank",
                },
            },
            "required": ["credential"],
            "additionalProperties": False,
        },
    ]
}
HeaderEntry = Annotated[Header, BeforeValidator(_from_text), WithJsonSchema(_SCHEMA)]
PATTERNS = {
    HEADER: "a header's name of at most 64 letters, digits, - and _",
    TEXT: "one line of ASCII without a blank at an end",
    PREFIX: "at most 64 characters of ASCII",
    NAME: PART_IN_WORDS,
}
