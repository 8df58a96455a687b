"""One entry of `credentials`: which secret a server is given, and in what form.

The short form, a text, is the name of a secret that becomes the variable's value. A further kind of
source is one more key here and one more case in units/credentials.py.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from autobot_mcp_bridge.model.names import PART, PART_IN_WORDS, is_part

NAME = f"^{PART}$"
# LoadCredential= has the path unquoted, and systemd 257 cannot hand on one with a blank (measured).
FILE = r"^/[^\x00-\x20\x7f]*$"
KEYS = ("name", "file", "as")


class Credential(BaseModel):
    """Where a secret comes from, and whether the variable gets its value or its file's path.

    Attributes:
        name: a secret of the host's stores, as `mcp-bridge secret` names it.
        file: a file of root's, instead of a name.
        form: `variable`: the value; `file`: the path of a file that holds it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    name: Annotated[str, Field(pattern=NAME)] | None = None
    file: Annotated[str, Field(pattern=FILE)] | None = None
    form: Literal["variable", "file"] = Field("variable", alias="as")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.name is None) == (self.file is None):
            raise ValueError("allowed is either name or file")
        return self

    @model_serializer
    def _as_configured(self) -> str | dict[str, str]:
        if self.name is not None and self.form == "variable":
            return self.name
        source = {"name": self.name} if self.name is not None else {"file": str(self.file)}
        return source if self.form == "variable" else {**source, "as": self.form}

    @property
    def is_file(self) -> bool:
        """Whether the variable gets a path."""
        return self.form == "file"

    def id(self, variable: str) -> str:
        """What systemd names it in $CREDENTIALS_DIRECTORY; the launcher takes it apart.

        No name of a variable holds a dot.
        """
        return f"{variable}.file" if self.is_file else variable


def _from_text(value: object) -> object:
    """The short form in long; an unknown key is told here, in the words of this record."""
    match value:
        case str() if is_part(value):
            return {"name": value}
        case dict() if value.keys() <= {*KEYS}:
            return value
        case dict():
            raise ValueError(f"allowed are the keys {', '.join(KEYS)}")
        case Credential():
            return value
    raise ValueError(f"allowed is {PART_IN_WORDS}, or an object with name or file")


_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "pattern": NAME},
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "pattern": NAME, "description": "of a secret"},
                "file": {"type": "string", "pattern": FILE, "description": "a file of root's"},
                "as": {
                    "enum": ["variable", "file"],
                    "default": "variable",
                    "description": "variable: the value; file: the path of a file with it",
                },
            },
            "additionalProperties": False,
        },
    ]
}
CredentialEntry = Annotated[Credential, BeforeValidator(_from_text), WithJsonSchema(_SCHEMA)]
