"""Paths below an agent's own directory: `{base}/agents/{agent_id}/…` (SM-36)."""

import os
import stat
from pathlib import PurePosixPath

from autobot_mcp_bridge.policy.scopes.strategy import (
    AgentContext,
    ScopeStrategy,
    ScopeViolationError,
)

LONGEST = 4096  # PATH_MAX of the kernel
# O_PATH needs no right to read what it opens, and opens no FIFO's other end (SM-F10).
_STEP = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_BASE = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class PrefixScope(ScopeStrategy):
    """The path is walked by descriptors, each opened in the one before, and follows no link.

    A link is refused wherever it leads, since another could stand there a moment later, and so is
    `..`. The server opens the path itself, by name and later: a link that somebody makes in between
    is the server's own to refuse, and its sandbox's (`paths`) to bound.
    """

    def __init__(self, base_path: str) -> None:
        """Raises ValueError if the base is not an absolute path."""
        self._base = PurePosixPath(base_path)
        if not self._base.is_absolute() or ".." in self._base.parts:
            raise ValueError("base_path must be an absolute path without ..")

    def apply(self, value: str, agent_ctx: AgentContext) -> str:
        """An absolute path as it is, a relative one below the agent's directory; both plain."""
        return str(self._root(agent_ctx) / value)

    def _root(self, agent_ctx: AgentContext) -> PurePosixPath:
        return self._base / "agents" / agent_ctx.agent_id

    def enforce(self, value: str, agent_ctx: AgentContext) -> None:
        path, root = PurePosixPath(value), self._root(agent_ctx)
        outside = ScopeViolationError(f"Path {value[:200]!r} is outside the agent scope")
        if len(value) > LONGEST or "\0" in value or ".." in path.parts or str(path) != value:
            raise outside
        if not path.is_relative_to(root):
            raise outside
        steps = ("agents", agent_ctx.agent_id, *path.relative_to(root).parts)
        try:
            self._walk(steps, outside)
        except (FileNotFoundError, NotADirectoryError):
            return  # the rest of it is not there yet: nothing that leads elsewhere
        except OSError as error:
            text = f"Path {value[:200]!r} cannot be looked at: {error.strerror}"
            raise ScopeViolationError(text) from None

    def _walk(self, steps: tuple[str, ...], outside: ScopeViolationError) -> None:
        here = os.open(self._base, _BASE)
        try:
            for step in steps:
                there = os.open(step, _STEP, dir_fd=here)
                os.close(here)
                here = there
                if stat.S_ISLNK(os.fstat(here).st_mode):
                    raise outside
        finally:
            os.close(here)
