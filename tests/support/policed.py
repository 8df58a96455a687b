"""A policed server behind a proxy: its manifest, and what of a request has reached it."""

import json
from typing import Any

from support.client import answer_to, code_of
from support.fakes import entry

AGENT = {"type": "research", "id": "research-01"}


def policed(name: str = "notes", *words: str, **settings: Any) -> dict[str, Any]:
    """The server, whose callers are an agent of type research."""
    return entry("policed", name, *words, **{"agent": AGENT, **settings})


def module(mode: str | None = None, **config: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "mcp_proxy", "config": config}
    return found if mode is None else {**found, "mode": mode}


def manifest(agent_type: str = "research", **settings: Any) -> dict[str, Any]:
    """One for the server `notes`, unless its modules are given."""
    return {"agent_type": agent_type, "modules": {"notes": module()}, **settings}


async def calls(client: Any, instance: str = "notes") -> list[Any]:
    """The tools/call requests that the server has seen, but for those that ask."""
    state = json.loads(await client.text("state"))
    return state["called"]


async def refused(client: Any, word: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Send a request that is refused with this word; the server has seen no request of its method."""
    before = json.loads(await client.text("state"))
    message = client.request_of(method, params, 77)
    response = await client.send(message)
    answer = answer_to(response, 77)
    assert code_of(answer) == word, answer
    after = json.loads(await client.text("state"))
    own = 1 if method == "tools/call" else 0  # the question itself
    assert after["seen"].get(method, 0) == before["seen"].get(method, 0) + own
    assert after["called"] == before["called"]
    return {**answer["error"], "status": response.status}


async def refused_call(
    client: Any, word: str, tool: str, arguments: dict[str, Any]
) -> dict[str, Any]:
    return await refused(client, word, "tools/call", {"name": tool, "arguments": arguments})
