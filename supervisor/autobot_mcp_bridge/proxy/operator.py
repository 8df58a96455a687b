"""What operators ask, on a listener of their own, and the command line, on a socket of its own.

Strangers get one word of it on the main listener.
"""

from aiohttp import web

from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.proxy.bridge import Bridge
from autobot_mcp_bridge.proxy.metrics import CONTENT_TYPE, exposition


def health_word(bridge: Bridge) -> dict[str, object]:
    return {"status": "ok" if bridge.healthy else "degraded"}


def _no_such_server(request: web.Request) -> web.Response:
    name = request.match_info["instance"]
    told = f"no such server: {name}; `mcp-bridge list` shows those that there are"
    return web.json_response({"error": told}, status=404)


def operator_app(bridge: Bridge) -> web.Application:
    """`/metrics` and `/healthz` with details."""

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=await exposition(bridge), headers={"Content-Type": CONTENT_TYPE})

    async def health(_: web.Request) -> web.Response:
        return web.json_response({**health_word(bridge), **bridge.status()})

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/healthz", health)
    return app


def control_app(bridge: Bridge) -> web.Application:
    """What the command line asks over the control socket, which only its owner can open."""

    async def status(_: web.Request) -> web.Response:
        return web.json_response(bridge.status())

    async def reload(request: web.Request) -> web.Response:
        await bridge.reload(retry="no-retry" not in request.query)
        return web.json_response(bridge.status())

    async def act(request: web.Request) -> web.Response:
        served = bridge.find(request.match_info["instance"])
        if served is None:
            return _no_such_server(request)
        match request.match_info["verb"]:
            case "start":
                served.start()
            case "stop":
                served.stop()
            case _:
                served.instance.reset()
        return web.json_response({"instance": served.spec.instance})

    async def tools(request: web.Request) -> web.Response:
        served = bridge.find(request.match_info["instance"])
        if served is None:
            return _no_such_server(request)
        return web.json_response(served.drift.shown())

    async def accept(request: web.Request) -> web.Response:
        """Body: `tools`, names or null for all that differ; `seal`, of what was looked at, or null."""
        served = bridge.find(request.match_info["instance"])
        if served is None:
            return _no_such_server(request)
        try:
            asked = await request.json()
            names, seal = asked["tools"] or (), asked["seal"]
        except (ValueError, LookupError, TypeError):
            told = "allowed is an object with tools and seal"
            return web.json_response({"error": told}, status=400)
        try:
            accepted = await bridge.baselines.accept(served.drift, names, seal)
        except UsageError as error:
            return web.json_response({"error": str(error)}, status=409)
        except OSError as error:
            told = f"{error.filename}: {error.strerror}; nothing is accepted"
            return web.json_response({"error": told}, status=500)
        if bridge.problems:  # its own may be mended by this
            await bridge.reload(retry=False)
        if accepted and served.drift.holds:
            served.conversations.tools_changed()
        return web.json_response({"server": served.spec.instance, "accepted": accepted})

    app = web.Application()
    app.router.add_get("/status", status)
    app.router.add_get("/servers/{instance}/tools", tools)
    app.router.add_post("/servers/{instance}/tools/accept", accept)
    app.router.add_post("/reload", reload)
    app.router.add_post("/servers/{instance}/{verb:start|stop|reset}", act)
    return app
