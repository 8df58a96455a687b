"""API keys for a running Bridge, and requests that show them."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from autobot_mcp_bridge.config.keys import KeyOrder, KeyRecord, KeyStore
from autobot_mcp_bridge.model.agents import Role
from support.bridge import Bridge
from support.client import Client, Modern, Session
from support.wire import Response, exchange


def store(bridge: Bridge) -> KeyStore:
    return KeyStore(bridge.state_dir / "keys.d")


async def made(
    bridge: Bridge,
    tenant: str,
    project: str | None = None,
    *,
    roles: Sequence[Role] = (Role.MEMBER,),
    agent: str = "a1",
    agent_type: str = "coder",
    expires: float | None = None,
) -> tuple[str, KeyRecord]:
    """A key that counts when this returns."""
    order = KeyOrder(agent, agent_type, project, tuple(roles), expires=expires)
    key, record = store(bridge).new(tenant, order)
    await bridge.reload()
    return key, record


class Keyed:
    """Mixed into a client: what it shows, and the project that it says it comes from.

    `shows`: "bearer", "header" (X-API-Key alone), or "beside" (X-API-Key beside the token).
    """

    key = ""
    project: str | None = None
    shows = "bearer"

    def shown(self, headers: dict[str, str]) -> dict[str, str]:
        return {**headers, **shown(self.key, self.project, shows=self.shows)}


class KeyedSession(Keyed, Session):
    def headers(self, message: Any = None) -> dict[str, str]:
        return self.shown(super().headers(message))


class KeyedModern(Keyed, Modern):
    def headers(self, message: Any = None) -> dict[str, str]:
        return self.shown(super().headers(message))


def shown(key: str, project: str | None = None, *, shows: str = "bearer") -> dict[str, str]:
    """The headers that show a key."""
    found = {"Authorization": f"Bearer {key}"} if shows == "bearer" else {"X-API-Key": key}
    return found if project is None else {**found, "X-Project": project}


def client(
    bridge: Bridge,
    instance: str,
    key: str,
    *,
    project: str | None = None,
    shows: str = "bearer",
    modern: bool = False,
    **options: Any,
) -> Any:
    """A client of a server that calls with a key; an async context manager."""
    token = bridge.token(instance) if shows == "beside" else None
    kind = KeyedModern if modern else KeyedSession
    made: Client = kind(bridge.url(instance), token, **options)
    assert isinstance(made, Keyed)
    made.key, made.project, made.shows = key, project, shows
    return made


async def get(
    bridge: Bridge,
    path: str,
    key: str | None,
    project: str | None = None,
    *,
    method: str = "GET",
    **headers: str,
) -> Response:
    """One request to /v1 on a connection of its own."""
    sent = {"Host": "127.0.0.1", **(shown(key, project) if key is not None else {}), **headers}
    return await exchange(bridge.base, method, sent, target=path)


async def requests_read(bridge: Bridge, instance: str) -> int:
    """How many messages the server itself has read so far, this question's own included."""
    async with bridge.modern(instance) as asking:
        await asking.tools()  # what the proxy asks by itself before the first call is over then
        state: dict[str, Any] = json.loads(await asking.text("state"))
    return sum(state["seen"].values())


@asynccontextmanager
async def untouched(bridge: Bridge, *instances: str) -> AsyncIterator[None]:
    """Assert that none of these servers reads a message meanwhile, counted by the servers."""
    before = {instance: await requests_read(bridge, instance) for instance in instances}
    yield
    after = {instance: await requests_read(bridge, instance) for instance in instances}
    own = 2  # the two requests of the question after
    assert after == {instance: count + own for instance, count in before.items()}
