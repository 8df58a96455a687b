"""A stdio server with all that the public conformance suite asks for, in the eras it is told to.

    main.py [--era both|pinned|legacy|modern] [--discover unknown|invalid|silent|exits|hangs]
            [--scope public|private]

    both     either era at any time on one process, as the specification allows
    pinned   the first request decides the era of the process, as the Python SDK does
    legacy   the handshake only, in which a modern request is served unseen, as most servers do
    modern   2026-07-28 only: initialize is refused

--log is a file that gets the pid and the method of each message that a process is told.
--discover tells how a server of the handshake takes `server/discover` before it is initialized: as
an unknown method, as an invalid request, not at all, by exiting, or by never saying anything again. --scope is the cacheScope of its modern results.
"""

import argparse
import asyncio
import sys

from server import DISCOVER, ERAS, Server

LINE_LIMIT = 64 << 20  # bytes of one message


async def serve(server: Server) -> None:
    reader = asyncio.StreamReader(limit=LINE_LIMIT)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        if line.strip():
            server.receive(line)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", choices=ERAS, default="both")
    parser.add_argument("--discover", choices=DISCOVER, default="unknown")
    parser.add_argument("--scope", default="public")
    parser.add_argument("--log")
    options = parser.parse_args()
    asyncio.run(serve(Server(options.era, options.discover, options.scope, options.log)))


if __name__ == "__main__":
    main()
