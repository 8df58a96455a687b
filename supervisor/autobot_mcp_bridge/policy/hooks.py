"""Pre-call hooks: code of installed packages that sees a call's arguments first (SM-55).

A hook is what an entry point of the group `autobot_mcp_bridge.hooks` names, a function of
`(Who, tool, arguments)` that returns the arguments, changed or not; `async`, or plain and then run
in a thread. It is run for those servers and tools whose definition names it. Whatever it raises
stops the call.
"""

import asyncio
import copy
import inspect
import logging
from collections.abc import Callable
from functools import partial
from importlib.metadata import entry_points
from typing import Any

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.server import HOOKS, Hook
from autobot_mcp_bridge.policy.aside import Aside, AsideError
from autobot_mcp_bridge.policy.globs import Globs
from autobot_mcp_bridge.policy.who import Who

log = logging.getLogger(__name__)


class Hooks:
    """Those of one server, in the order of its definition."""

    def __init__(self, wanted: tuple[Hook, ...], aside: Aside, most: int) -> None:
        """`most` bytes of arguments may come of one."""
        self._hooks = [(each, Globs(each.tools)) for each in wanted]
        self._loaded: dict[str, Callable[..., Any]] = {}
        self._aside = aside
        self._most = most

    async def run(self, who: Who, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments that come of all hooks for this tool, each given those of the one before.

        Raises:
            CallError: one of them failed, took too long, or gave no arguments.
        """
        for hook, tools in self._hooks:
            if not tools.match(tool):
                continue
            try:
                # A copy: what fails half way must have changed nothing.
                found = await self._call(hook, who, tool, copy.deepcopy(arguments))
                arguments = self._checked(found)
            except Exception as error:
                # Code of others: whatever it raises, its text may quote the arguments.
                what = type(error).__name__ if not isinstance(error, AsideError) else str(error)
                said = f"{who.instance}: hook {hook.name} stopped a call of {tool!r}: {what}"
                log.warning("%s", said, extra={"MCP_INSTANCE": who.instance})
                raise CallError(Cause.HOOK_FAILED, "a hook stopped the call") from error
        return arguments

    async def _call(self, hook: Hook, who: Who, tool: str, arguments: dict[str, Any]) -> Any:
        if hook.name not in self._loaded:
            found = await self._aside.run(hook.timeout, partial(_load, hook.name))
            self._loaded[hook.name] = found
        function = self._loaded[hook.name]
        if inspect.iscoroutinefunction(function):
            async with asyncio.timeout(hook.timeout):
                return await function(who, tool, arguments)
        return await self._aside.run(hook.timeout, lambda: function(who, tool, arguments))

    def _checked(self, found: Any) -> dict[str, Any]:
        if not isinstance(found, dict) or len(jsonrpc.dumps(found)) > self._most:
            raise ValueError
        return found


def _load(name: str) -> Any:
    return entry_points(group=HOOKS)[name].load()
