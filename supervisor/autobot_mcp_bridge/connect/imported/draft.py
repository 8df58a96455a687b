"""What one entry of a client's file becomes here, before it has a name and its secrets are stored."""

from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Secret:
    """One that an entry holds, or wants.

    Attributes:
        label: the variable that is to hold it, or the header.
        value: None where the file only says that there is one.
        header: whether it belongs to a header of an upstream.
        prefix: what stands before it in the header.
        hint: what a person is asked for.
    """

    label: str
    value: str | None = field(repr=False)
    header: bool = False
    prefix: str = ""
    hint: str = ""


@dataclass(slots=True)
class Draft:
    """One entry on its way; every key of it ends up in `became` or `left_out`.

    Attributes:
        name: as the client calls it.
        where: the entry's JSON path in the file.
        became: key of the entry: what it is here.
        left_out: key of the entry: why it is nothing here.
        to_do: what keeps it from being served until a person has done it; never a secret.
        notes: what is worth knowing.
        off: why the file itself has it disabled; empty: it has not.
        skipped: why it cannot be had at all; empty: it can.
    """

    name: str
    where: str
    command: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    url: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    secrets: list[Secret] = field(default_factory=list)
    became: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    to_do: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    off: str = ""
    skipped: str = ""

    def skip(self, why: str) -> None:
        """Say why it cannot be had; the first reason stays."""
        self.skipped = self.skipped or why

    def keep_secret(self, secret: Secret) -> str:
        """Note a secret, under a label that no other value has; the label.

        The same value twice for one variable is one secret: many a file gives it both ways.
        """
        if secret in self.secrets:
            return secret.label
        label, number = secret.label, 1
        taken = {each.label.lower() for each in self.secrets if each.header is secret.header}
        if not secret.header:
            taken |= {name.lower() for name in self.env}
        while label.lower() in taken:
            number += 1
            label = f"{secret.label}_{number}"
        self.secrets.append(replace(secret, label=label))
        return label
