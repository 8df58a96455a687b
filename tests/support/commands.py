"""A command of `mcp-bridge`, run in this process in directories of a test's own."""

import contextlib
import io
from dataclasses import dataclass

from autobot_mcp_bridge.cli.main import main
from autobot_mcp_bridge.config.places import Places


@dataclass(frozen=True, slots=True)
class Ran:
    status: int
    out: str
    err: str


def options(places: Places) -> list[str]:
    return [
        f"--config-dir={places.config_dir}",
        f"--state-dir={places.state_dir}",
        f"--runtime-dir={places.runtime_dir}",
    ]


def run(places: Places, *words: str) -> Ran:
    """Run it to its end; argparse's exits are a status, too."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main([*options(places), *words])
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
    return Ran(status, out.getvalue(), err.getvalue())
