"""Entries of servers.json for servers by url, in front of a proxy of the test's own."""

from typing import Any

from support import reachable
from support.bridge import Bridge

LOOPBACK = {"mode": "list", "allow": ["127.0.0.1", "::1"]}


def remote(url: str, name: str = "remote", token: str = "", **settings: Any) -> dict[str, Any]:
    headers = {"headers": {"Authorization": f"Bearer {token}"}} if token else {}
    return {"name": name, "url": url, "network": LOOPBACK, **headers, **settings}


def behind(far: Bridge, instance: str, name: str = "remote", **settings: Any) -> dict[str, Any]:
    """One of the far proxy's servers."""
    return remote(far.url(instance), name, far.token(instance), **settings)


def near(*servers: dict[str, Any], **more: Any) -> Bridge:
    """A proxy whose servers with url every uid can execute."""
    return Bridge(servers, python=reachable.python(), **more)
