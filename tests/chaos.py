"""The whole chaos run: `python tests/chaos.py [--calls N] [--kills N] [--seed N]`.

Progress goes to stderr every few seconds; the last line of stdout is the summary as JSON. Exit
status 1 when a promise was broken. CHAOS_SEED sets the seed, too.
"""

import argparse
import asyncio
import json
import os
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from support.storm import Size, storm


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    whole = Size()
    parser = argparse.ArgumentParser(description="calls of many clients while servers are killed")
    for name in ("servers", "tenants", "clients", "calls", "kills"):
        parser.add_argument(f"--{name}", type=int, default=getattr(whole, name))
    chosen = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(2**32))
    parser.add_argument("--seed", type=int, default=chosen)
    options = vars(parser.parse_args())
    seed = options.pop("seed")
    say(f"seed {seed}: CHAOS_SEED={seed} repeats this choice of calls and victims")
    summary = asyncio.run(storm(Size(**options), seed, say))
    print(json.dumps(summary), flush=True)
    return 0 if summary["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
