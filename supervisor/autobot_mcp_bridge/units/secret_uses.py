"""Who uses which secret, and what a value must be for that. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from autobot_mcp_bridge.model.credential import Credential
from autobot_mcp_bridge.model.host import Tls
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.credentials import MOST_BYTES
from autobot_mcp_bridge.units.escape import MOST_STRING


@dataclass(frozen=True, slots=True)
class Use:
    """One entry of a server's `credentials` or `headers`, or of host.toml."""

    instance: str
    variable: str
    credential: Credential

    def __str__(self) -> str:
        return f"{self.instance} ({self.variable})"


def uses_of(specs: Iterable[ServerSpec], name: str | None = None) -> Iterator[Use]:
    """Each use, of one secret or of all."""
    for spec in specs:
        for variable, credential in spec.secrets.items():
            if name is None or credential.name == name:
                yield Use(spec.instance, variable, credential)


def uses_of_host(tls: Tls) -> Iterator[Use]:
    """Each use that the host itself has for one."""
    for key, value in (("tls.certificate", tls.certificate), ("tls.key", tls.key)):
        if value is not None and not value.startswith("/"):
            yield Use("host.toml", key, Credential.model_validate({"name": value, "as": "file"}))


def refusal(value: bytes, uses: Iterable[Use]) -> str:
    """Why the value is not to be had as a secret, or not for a use; empty: it is."""
    if not value.strip():
        return "the value is empty"
    if len(value) > MOST_BYTES:
        return f"the value is too long; allowed are at most {MOST_BYTES} bytes"
    text = value.removesuffix(b"\n")
    for use in uses:
        if use.credential.is_file:
            continue
        instead = f'{use} has it as a variable; give it there "as": "file"'
        if b"\0" in text:
            return f"the value holds a NUL, which no variable can (environ(7)), and {instead}"
        if len(f"{use.variable}=") + len(text) > MOST_STRING:
            return f"the value is too long for a variable (128 KiB, execve(2)), and {instead}"
    return ""
