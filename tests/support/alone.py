"""One test in a pytest of its own, with a part of the product taken away."""

import asyncio
import os
import sys
from collections.abc import Iterable

from support.fakes import SERVERS
from support.waiting import PATIENCE

ROOT = SERVERS.parent.parent
WITHIN = 120.0 * PATIENCE  # seconds on a busy machine
_PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no", "--tb=short")


async def run_alone(
    *words: str, env: dict[str, str], paths: Iterable[object]
) -> tuple[int | None, str]:
    """Exit status and output.

    Args:
        words: more for pytest's command line.
        env: variables beyond those of this process.
        paths: go before PYTHONPATH.
    """
    added = (*map(str, paths), os.environ.get("PYTHONPATH", ""))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *_PYTEST, *words),
        cwd=ROOT,
        env={**os.environ, **env, "PYTHONPATH": os.pathsep.join(filter(None, added))},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(WITHIN):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, out.decode()
