"""Sliding windows in Redis, Valkey or what else speaks their protocol: for several proxies.

One script counts all windows of a call at once, by the server's own clock, so that proxies whose
clocks differ agree. The only module that knows redis-py, which is imported where a URL is
configured. Whatever goes wrong, nothing is let through.
"""

import asyncio
import itertools
import os
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.policy.limits.counter import CountError, Full, Limit

# Seconds for one call to be counted, connecting included.
DEADLINE = 1.0
# Seconds after a failure in which calls are refused at once: a server that is away is not hammered.
PAUSE = 0.5
CONNECTIONS = 16
# One slot of a cluster for all: a script may only touch keys of one.
PREFIX = "{mcp-bridge}:rate:"
FROM_ENVIRONMENT, FROM_CREDENTIALS = "MCP_BRIDGE_REDIS_PASSWORD", "redis-password"
_UNSAFE = re.compile(r"[\n\r\0]")
# KEYS: windows. ARGV: count and microseconds of each, at last a name that no other event has.
SCRIPT = """
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
for i, key in ipairs(KEYS) do
  local count, window = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now - window))
  if redis.call('ZCARD', key) >= count then
    local oldest = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    local wait = oldest[2] and (tonumber(oldest[2]) + window - now) or window
    return {i, wait}
  end
end
for i, key in ipairs(KEYS) do
  local at = string.format('%.0f', now)
  redis.call('ZADD', key, at, at .. ARGV[#ARGV])
  redis.call('PEXPIRE', key, math.ceil(tonumber(ARGV[2 * i]) / 1000))
end
return {0, 0}
"""


class SharedCounter:
    """Implements `Counter`."""

    def __init__(self, url: str) -> None:
        """`url` as redis-py takes it: redis://, rediss://, unix://; without a password in it.

        Raises:
            UsageError: redis-py is not installed.
        """
        try:
            import redis.asyncio as library
            from redis.asyncio.retry import Retry
            from redis.backoff import NoBackoff
        except ImportError:
            text = (
                "host.toml, rates.redis: redis-py is not installed here; install the extra `redis`"
            )
            raise UsageError(text) from None
        pool = library.BlockingConnectionPool.from_url(
            url,
            password=_password(),
            max_connections=CONNECTIONS,
            timeout=DEADLINE,
            socket_timeout=DEADLINE,
            socket_connect_timeout=DEADLINE,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
        self._client = library.Redis(connection_pool=pool)
        self._script: Any = self._client.register_script(SCRIPT)
        self._failures = (library.RedisError, OSError, TimeoutError)
        self._events = itertools.count()
        self._own = f"-{secrets.token_hex(8)}-"
        self._until = 0.0

    async def take(self, limits: Sequence[Limit]) -> Full | None:
        loop = asyncio.get_running_loop()
        if loop.time() < self._until:
            raise CountError("the shared counter did not answer a moment ago")
        words: list[object] = []
        for limit in limits:
            words += (limit.rate.count, int(limit.rate.seconds * 1_000_000))
        words.append(f"{self._own}{next(self._events)}")
        try:
            async with asyncio.timeout(DEADLINE):
                full, wait = await self._script(keys=[key_of(each) for each in limits], args=words)
        except self._failures:
            self._until = loop.time() + PAUSE
            raise CountError("the shared counter does not answer") from None
        if not full:
            return None
        return Full(limits[full - 1], max(0.0, wait / 1_000_000))

    async def close(self) -> None:
        await self._client.aclose()
        await self._client.connection_pool.disconnect()


def key_of(limit: Limit) -> str:
    """The name of a window there: what would part names or lines is replaced (SM-73)."""
    plain = _UNSAFE.sub("_", limit.key.replace(":", "|"))
    return f"{PREFIX}{plain}:{limit.rate.text}"


def _password() -> str | None:
    """Of a credential that systemd has loaded for the proxy, else of its environment."""
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if folder is not None and (file := Path(folder, FROM_CREDENTIALS)).is_file():
        return file.read_text(encoding="utf-8").rstrip("\n")
    return os.environ.get(FROM_ENVIRONMENT)
