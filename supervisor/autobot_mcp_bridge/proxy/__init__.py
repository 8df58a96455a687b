"""The aiohttp application: routes, health, metrics, streaming."""
