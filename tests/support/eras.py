"""Servers of either era (tests/servers/conformance), and clients that declare what they can do."""

import json
from typing import Any

from support.bridge import Bridge
from support.client import META, Modern, Session
from support.fakes import entry

FEATURES: dict[str, Any] = {"elicitation": {}, "roots": {}, "sampling": {}}
NAME = {"action": "accept", "content": {"name": "Ada"}}


def conformance(name: str, era: str, *words: str, **settings: Any) -> dict[str, Any]:
    return entry("conformance/main", name, "--era", era, *words, **settings)


def isolated(name: str, era: str, *words: str, **settings: Any) -> dict[str, Any]:
    return conformance(name, era, *words, sessions="isolated", **settings)


def modern(bridge: Bridge, instance: str, *, token: str = "", **features: Any) -> "Declaring":
    """A modern client that declares these features."""
    url = bridge.url(instance)
    return Declaring(url, token or bridge.token(instance), features=features)


class Declaring(Modern):
    """A modern client with features, and its retries."""

    def __init__(self, url: str, token: str | None, *, features: dict[str, Any]) -> None:
        super().__init__(url, token)
        self.features = features

    def prepare(self, message: Any) -> Any:
        made = super().prepare(message)
        if isinstance(made, dict) and "method" in made:
            made["params"]["_meta"].setdefault(META + "clientCapabilities", {})
            made["params"]["_meta"][META + "clientCapabilities"] = self.features
        return made

    async def retry(
        self, tool: str, state: str, answers: dict[str, Any], **more: Any
    ) -> dict[str, Any]:
        """Make the call again, with what it has asked for."""
        params = {"name": tool, "arguments": more.pop("arguments", {}), **more}
        params |= {"requestState": state, "inputResponses": answers}
        return await self.request("tools/call", params)


async def heard(client: Session | Modern) -> list[str]:
    """The methods that the client's process has been told, in their order."""
    found: list[str] = json.loads(await client.text("gw_heard"))
    return found


async def pid_of(client: Session | Modern) -> int:
    return int(await client.text("gw_pid"))
