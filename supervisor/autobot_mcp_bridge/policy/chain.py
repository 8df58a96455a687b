"""Who may do what: the one chain that every request of both eras goes through, in this order.

It is judged by what was parsed of the body. A step refuses by a CallError, before the server has
seen anything of the request; ARCHITECTURE.md shows the table, and a test compares the two.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from autobot_mcp_bridge.channels.call import Call
from autobot_mcp_bridge.channels.jsonrpc import Answer
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.rates import rate_of
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.policy.answers import MADE, Finish, finish_of
from autobot_mcp_bridge.policy.asked import Asked
from autobot_mcp_bridge.policy.drift.drift import Drift
from autobot_mcp_bridge.policy.globs import ByGlob
from autobot_mcp_bridge.policy.hooks import Hooks
from autobot_mcp_bridge.policy.host import PolicyHost
from autobot_mcp_bridge.policy.limits.counter import CountError, Limit
from autobot_mcp_bridge.policy.limits.inflight import InFlight, Place
from autobot_mcp_bridge.policy.methods import allowed
from autobot_mcp_bridge.policy.rules import Rules
from autobot_mcp_bridge.policy.scoping import enforce
from autobot_mcp_bridge.policy.targets import check_target
from autobot_mcp_bridge.policy.tools import ToolRule


@dataclass(frozen=True, slots=True)
class Step:
    """One row of the table."""

    name: str
    says: str
    refuses: tuple[Cause, ...]


STEPS = (
    Step(
        "methods", "the method is one of its era's, or of `methods.allow`", (Cause.METHOD_DENIED,)
    ),
    Step(
        "targets",
        "tool, resource or prompt is let through by `tools` and by the caller's manifest",
        (Cause.TOOL_DENIED, Cause.RESOURCE_DENIED, Cause.PROMPT_DENIED),
    ),
    Step(
        "drift",
        "the tool is as it was accepted, where `tools.drift` holds others back",
        (Cause.TOOL_HELD,),
    ),
    Step("hooks", "each of `hooks` gives the arguments, changed or not", (Cause.HOOK_FAILED,)),
    Step(
        "schema",
        "the arguments fit the tool's own inputSchema",
        (Cause.SCHEMA_MISMATCH, Cause.SCHEMA_UNUSABLE),
    ),
    Step(
        "scopes",
        "what the arguments name is the agent's; what a scope changes fits the schema, too",
        (Cause.SCOPE_VIOLATION,),
    ),
    Step("filters", "no argument filter blocks", (Cause.ARGUMENTS_REFUSED,)),
    Step(
        "rates",
        "tenant, caller, manifest and tool have room; only then it counts, in all of them",
        (Cause.RATE_LIMITED, Cause.LIMITS_UNAVAILABLE),
    ),
    Step("places", "the caller has not too many calls in flight", (Cause.TOO_MANY_CALLS,)),
)


class Admission:
    """A request that may be made.

    Attributes:
        finish: what its answer goes through; None: nothing.
    """

    __slots__ = ("_place", "finish")

    def __init__(self, finish: Finish | None = None, place: Place | None = None) -> None:
        self.finish = finish
        self._place = place

    def sent(self, call: Call) -> Call:
        """The server has been asked; the call itself."""
        if self._place is not None:
            self._place.call = call
        return call

    def finished(self, answer: Answer) -> Answer:
        """An answer that is known already, as this caller may have it."""
        return answer if self.finish is None else self.finish(answer)

    def give_up(self) -> None:
        """The server has not been asked, and will not be; without effect once it has."""
        if self._place is not None and self._place.call is None:
            self._place.give_up()


_PLAIN = Admission()
# Callers and tools whose limits are remembered; then they are found out anew.
MOST_KNOWN = 4096


class Chain:
    """The chain of one server; cheap where nothing is configured.

    Attributes:
        drift: of the tools that any of its processes lists.
    """

    def __init__(self, spec: ServerSpec, host: PolicyHost, drift: Drift | None = None) -> None:
        self._host = host
        self.drift = drift if drift is not None else Drift(spec.instance)
        self._in_flight = InFlight()
        self.configure(spec)

    def configure(self, spec: ServerSpec) -> None:
        """Put a changed definition to use, from the next request on."""
        self._spec = spec
        self.drift.mode = spec.tools.drift
        self._tools = ToolRule(spec.tools)
        self._hooks = Hooks(spec.hooks, self._host.aside, spec.caps.body) if spec.hooks else None
        rates = spec.rates
        self._rate = rate_of(rates.principal) if rates.principal is not None else None
        self._by_tool = ByGlob({glob: rate_of(text) for glob, text in rates.tools.items()})
        limited = self._rate or rates.tools or rates.concurrent or self._host.tenant_rate
        self._known_limits: dict[tuple[str, str | None, Rules | None], tuple[Limit, ...]] = {}
        self._bare = not limited and self._hooks is None

    async def admit(self, asked: Asked) -> Admission:
        """Let the request through every step.

        Raises:
            CallError: a step refuses it.
        """
        rules = self._host.rules(asked.who.agent_type, self._spec)
        self._methods(asked)
        await self._targets(asked, rules)
        if self.drift.holds and asked.tool is not None:
            await asked.check(asked.tool)
        if rules is None and self._bare:
            return _PLAIN
        if asked.tool is not None:
            await self._hook(asked)
            await self._schema(asked, rules)
            await self._scopes(asked, rules)
        self._filters(asked, rules)
        if asked.method not in MADE:
            return self._admitted(asked, rules, None)
        await self._rates(asked, rules)
        return self._admitted(asked, rules, self._place(asked))

    def resumed(self, asked: Asked) -> Admission:
        """A request that goes on with a call which has been let through (26 mrtr): sends no arguments.

        Raises:
            CallError: its caller may no longer do it.
        """
        rules = self._host.rules(asked.who.agent_type, self._spec)
        self._methods(asked)
        check_target(asked, self._tools, rules)
        return self._admitted(asked, rules, None)

    def _admitted(self, asked: Asked, rules: Rules | None, place: Place | None) -> Admission:
        finish = None
        if rules is not None:
            finish = finish_of(asked.method, rules, self._spec.instance, asked)
        return Admission(finish, place)

    # ---- the steps ----

    def _methods(self, asked: Asked) -> None:
        if not allowed(asked.method, asked.known, self._spec.methods.allow):
            raise CallError(Cause.METHOD_DENIED, f"method not found: {asked.method}")

    async def _targets(self, asked: Asked, rules: Rules | None) -> None:
        check_target(asked, self._tools, rules)
        if rules is None or asked.tool is None:
            return
        descriptor = await asked.describe(asked.tool)
        if descriptor is None or (rules.read_only and not descriptor.read_only):
            raise CallError(Cause.TOOL_DENIED, f"Unknown tool: {asked.tool}")

    async def _hook(self, asked: Asked) -> None:
        if self._hooks is not None and asked.tool is not None:
            asked.params["arguments"] = await self._hooks.run(
                asked.who, asked.tool, _arguments(asked)
            )

    async def _schema(self, asked: Asked, rules: Rules | None) -> None:
        """Under a manifest, and where a hook may have changed something."""
        if rules is None and self._hooks is None:
            return
        descriptor = await asked.describe(asked.tool or "")
        if descriptor is not None:
            descriptor.check(_arguments(asked))

    async def _scopes(self, asked: Asked, rules: Rules | None) -> None:
        if rules is None or not rules.scopes:
            return
        before = _arguments(asked)
        arguments = await enforce(rules, asked.who, asked.tool or "", before, self._host.aside)
        if arguments != before:
            asked.params["arguments"] = arguments
            await self._schema(asked, rules)

    def _filters(self, asked: Asked, rules: Rules | None) -> None:
        if rules is not None and rules.arguments is not None and (found := asked.arguments):
            rules.arguments.check(found, self._spec.instance, asked)

    async def _rates(self, asked: Asked, rules: Rules | None) -> None:
        key = asked.who.name, asked.tool, rules
        limits = self._known_limits.get(key)
        if limits is None:
            if len(self._known_limits) >= MOST_KNOWN:
                self._known_limits.clear()
            limits = self._known_limits[key] = tuple(self._limits(asked, rules))
        if not limits:
            return
        try:
            full = await self._host.counter.take(limits)
        except CountError as error:
            text = f"the call cannot be counted now, and is not made: {error}"
            raise CallError(Cause.LIMITS_UNAVAILABLE, text, retry_after=1) from None
        if full is not None:
            text = f"rate limit of {full.limit.rate.text} for {full.limit.says}"
            raise CallError(Cause.RATE_LIMITED, text, retry_after=full.retry_after)

    def _limits(self, asked: Asked, rules: Rules | None) -> Iterator[Limit]:
        """What the call counts in, what is of more calls first."""
        who, tool = asked.who, asked.tool
        if (rate := self._host.tenant_rate) is not None:
            yield Limit(f"tenant/{who.tenant}", rate, "the tenant")
        if self._rate is not None:
            yield Limit(f"caller/{who.instance}/{who.name}", self._rate, "this caller")
        if rules is not None and rules.rate is not None:
            key = f"agent/{rules.agent_type}/{who.name}"
            yield Limit(key, rules.rate, "this agent")
        if tool is None:
            return
        if (by_tool := self._by_tool.find((tool,))) is not None:
            key = f"tool/{who.instance}/{who.name}/{by_tool[0]}"
            yield Limit(key, by_tool[1], f"tools {by_tool[0]}")
        if rules is not None and (by_tool := rules.rate_of(tool)) is not None:
            key = f"agent-tool/{rules.agent_type}/{who.name}/{by_tool[0]}"
            yield Limit(key, by_tool[1], f"tools {by_tool[0]}")

    def _place(self, asked: Asked) -> Place | None:
        most = self._spec.rates.concurrent
        return self._in_flight.take(asked.who.name, most) if most is not None else None


def _arguments(asked: Asked) -> dict[str, Any]:
    """A tool's arguments; none is an empty object, anything else is refused."""
    found = asked.params.get("arguments")
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise CallError(Cause.SCHEMA_MISMATCH, "the arguments of a tool are an object")
    return found
