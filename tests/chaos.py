"""The whole chaos run: `python tests/chaos.py [--units SUITE] [--calls N] [--kills N] [--seed N]`.

Servers are children of the proxy; with `--units bookworm` or `trixie` they are units of the
installed product, in a container of tests/lab with systemd 252 or 257 (root; exit status 77 where
there can be none).
Progress goes to stderr every few seconds; the last line of stdout is the summary as JSON. Exit
status 1 when a promise was broken. CHAOS_SEED sets the seed, too.
"""

import argparse
import asyncio
import json
import os
import random
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from lab import host, recipe
from lab.places import default_cache
from showing import NOT_RUN_STATUS
from support.storm import Size, Stormed, on_children, storm
from support.storm_units import on_units_of


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def run(
    started: AbstractAsyncContextManager[Stormed], size: Size, seed: int
) -> dict[str, Any]:
    async with started as host:
        return await storm(host, size, seed, say)


def main() -> int:
    whole = Size()
    parser = argparse.ArgumentParser(description="calls of many clients while servers are killed")
    for name in ("servers", "tenants", "clients", "calls", "kills"):
        parser.add_argument(f"--{name}", type=int, default=getattr(whole, name))
    parser.add_argument("--units", choices=recipe.SUITES, help="on the installed product")
    chosen = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(2**32))
    parser.add_argument("--seed", type=int, default=chosen)
    options = vars(parser.parse_args())
    seed, suite = options.pop("seed"), options.pop("units")
    size = Size(**options)
    why = host.unavailable(default_cache()) if suite else None
    if why is not None:
        say(why)
        return NOT_RUN_STATUS
    say(f"seed {seed}: CHAOS_SEED={seed} repeats this choice of calls and victims")
    summary = asyncio.run(run(on_units_of(suite, size) if suite else on_children(size), size, seed))
    print(json.dumps(summary), flush=True)
    return 0 if summary["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
