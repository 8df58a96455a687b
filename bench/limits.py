"""What can be reached at all: servers that do as little as can be done, on uvloop.

limits.py post  tcp:PORT        answers a tools/call itself: one orjson parse, one dump, no MCP
limits.py echo  unix:PATH       answers the body it was sent
limits.py proxy tcp:PORT PATH   raw aiohttp reverse proxy to the handler behind the socket PATH

`post` is the floor. `proxy` before `echo` is the reference, in whose multiples figures are told:
no MCP, no JSON, no policy, and the shape that a gateway with an aiohttp client in it has.
"""

import asyncio
import sys
from contextlib import suppress

import aiohttp
import orjson
import uvloop
from aiohttp import web

MAX_BODY = 64 << 20
WHOLE = 1 << 20  # answers below are passed on in one piece
JSON = {"Content-Type": "application/json"}
HOP_BY_HOP = {
    *("connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host", "date"),
    *("content-length", "server", "proxy-authorization", "proxy-authenticate"),
}


def passed(headers):
    return {name: value for name, value in headers.items() if name.lower() not in HOP_BY_HOP}


def application(method, handler):
    app = web.Application(client_max_size=MAX_BODY)
    app.router.add_route(method, "/{tail:.*}", handler)
    return app


async def echo(request):
    return web.Response(body=await request.read(), headers=JSON)


async def post(request):
    message = orjson.loads(await request.read())
    text = message["params"]["arguments"]["text"]
    result = {"content": [{"type": "text", "text": text}]}
    body = orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
    return web.Response(body=body, headers=JSON)


def proxy(path):
    upstream = aiohttp.ClientSession(
        connector=aiohttp.UnixConnector(path=path, limit=0),
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None),
    )

    async def forward(request):
        body = await request.read() if request.body_exists else None
        async with upstream.request(
            request.method,
            "http://upstream" + request.path_qs,
            headers=passed(request.headers),
            data=body,
            allow_redirects=False,
        ) as answer:
            headers, length = passed(answer.headers), answer.content_length
            if length is not None and length < WHOLE:
                body = await answer.read()
                return web.Response(status=answer.status, headers=headers, body=body)
            response = web.StreamResponse(status=answer.status, headers=headers)
            response.content_length = length
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response

    async def close(_app):
        await upstream.close()

    app = application("*", forward)
    app.on_cleanup.append(close)
    return app


async def main(kind, listen, *rest):
    match kind:
        case "post":
            app = application("POST", post)
        case "echo":
            app = application("POST", echo)
        case "proxy":
            app = proxy(*rest)
        case _:
            sys.exit(f"limits.py: unknown kind {kind}")
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    where, _, value = listen.partition(":")
    if where == "unix":
        await web.UnixSite(runner, value).start()
    else:
        await web.TCPSite(runner, "127.0.0.1", int(value)).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        uvloop.run(main(*sys.argv[1:]))
