"""All servers of one proxy: put the wanted configuration to use, again and again.

The configuration on the disk is what is wanted, the running instances are what there is; `apply`
compares the two and changes only what differs. A configuration with a mistake changes nothing.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Protocol, Self

from autobot_mcp_bridge.channels.instance import Instance
from autobot_mcp_bridge.config.keys import KeyStore
from autobot_mcp_bridge.config.load import Loaded
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.problem import Problem
from autobot_mcp_bridge.config.source import Files, Source
from autobot_mcp_bridge.config.tokens import TokenStore
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.model.promises import Facts, broken
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.policy.audit.trail import AuditTrail
from autobot_mcp_bridge.policy.host import PolicyHost
from autobot_mcp_bridge.policy.keys import KeyTable
from autobot_mcp_bridge.policy.manifest.load import ManifestFiles
from autobot_mcp_bridge.policy.manifest.text import environment
from autobot_mcp_bridge.policy.oauth import access_tokens
from autobot_mcp_bridge.proxy.baselines import Baselines
from autobot_mcp_bridge.proxy.describe import describe
from autobot_mcp_bridge.proxy.key_uses import KeyUses
from autobot_mcp_bridge.proxy.refusals import Refusals
from autobot_mcp_bridge.proxy.served import Served, index_tokens
from autobot_mcp_bridge.proxy.tls import Tls
from autobot_mcp_bridge.runtimes.base import Command, News, Runtime
from autobot_mcp_bridge.supervision.journal import Forgetful, Memory

# How often the configuration is looked at: a revocation counts within a second.
POLL = 0.5
# Sessions are looked through for expired ones so often.
SWEEP = 5.0
# Servers get so long to end at shutdown beyond their own timeouts.stop.
CLOSE_MARGIN = 5.0
# What was written to servers before the proxy leaves them is taken within these, or they end.
FLUSH_LOOKS = 100
FLUSH_POLL = 0.01
# A task that failed through a fault of ours is started again after so long.
FAULT_PAUSE = 1.0

RESTART_WANTED = "host.toml has changed; its settings count when the proxy is restarted"
UNREADABLE = Problem("the configuration", "", "", "cannot be read; the proxy's log tells more")

log = logging.getLogger(__name__)


class Packages(Protocol):
    """Where commands come from: resolves what a definition names, installs what is missing."""

    def command(self, spec: ServerSpec) -> Command:
        """The resolved command.

        Raises:
            CallError: it is being installed, or cannot be.
        """
        ...

    async def ensure(self, specs: Iterable[ServerSpec]) -> None:
        """See to it that what these need gets installed, in the background."""
        ...


class Bridge:
    """The servers by URL path, kept in step with the configuration."""

    def __init__(
        self,
        places: Places,
        settings: HostSettings,
        runtime: Runtime,
        packages: Packages,
        source: Source | None = None,
        memory: Memory | None = None,
        tls: Tls | None = None,
        trail: AuditTrail | None = None,
    ) -> None:
        self.places = places
        self.trail = trail or AuditTrail(settings.audit)
        self._memory = memory or Forgetful()
        self._source = source or Files(places)
        self.settings = settings
        self.access = access_tokens(settings)
        self.policy = PolicyHost(settings)
        shared = settings.rates.redis is not None
        self._manifests = ManifestFiles(places.manifests_d, environment(), shared=shared)
        self.runtime = runtime
        self.packages = packages
        self.url = ""  # where clients connect, once there is a listener
        self.tls = tls
        self.routes: dict[str, Served] = {}
        self.problems: tuple[Problem, ...] = ()
        self.host_facts: Facts = {}
        self.reload_wanted = asyncio.Event()
        self.loaded = 0  # configurations put to use so far
        self.keys = KeyTable()
        self.refusals = Refusals(self.trail)
        self.restart_wanted = False  # the host's settings on the disk are not those in force
        self._tokens = TokenStore(places.tokens_d)
        self._keys = KeyStore(places.keys_d)
        self._uses = KeyUses(self.keys, places.key_uses)
        self.baselines = Baselines(places.tools_d)
        self._tasks: dict[Instance, asyncio.Task[None]] = {}
        self._left = False  # the servers and sessions are the next proxy's
        self._group = asyncio.TaskGroup()
        self._watcher: asyncio.Task[None] | None = None
        self._seen = ""
        self._reloading = asyncio.Lock()
        self._ensured: dict[str, tuple[str, ...]] = {}

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        await self.reload()
        await self._uses.recall()
        self._watcher = self._group.create_task(self._watch())
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
        if not self._left:
            await self.close_servers()
        await self.runtime.close()
        await self._uses.save()
        await self.baselines.save()
        await self.policy.close()
        await self._group.__aexit__(None, None, None)

    async def close_servers(self) -> None:
        """End all sessions and servers, and take no more calls; bounded, idempotent.

        To be awaited while clients can still be answered: their calls get an error, their streams
        an end.
        """
        for served in self.routes.values():
            served.conversations.end()
        for instance in self._tasks:
            instance.dismiss()
        tasks = list(self._tasks.values())
        if tasks:
            longest = max(instance.spec.timeouts.stop for instance in self._tasks)
            _, late = await asyncio.wait(tasks, timeout=longest + CLOSE_MARGIN)
            for task in late:
                task.cancel()

    def end_streams(self) -> None:
        """End the sessions' own streams, and no session: whoever reads one opens it again."""
        for served in self.routes.values():
            served.conversations.hang_up()

    async def leave(self) -> None:
        """Let go of all servers and sessions as they are: the next proxy goes on with them.

        Calls that are still open get an error; bounded.
        """
        self._left = True
        if self._watcher is not None:
            self._watcher.cancel()
        tasks = dict(self._tasks)
        for instance in tasks:
            error = CallError(Cause.SHUTTING_DOWN, "the proxy is being restarted", retry_after=1)
            instance.give_up_calls(error)
        for _ in range(FLUSH_LOOKS):
            if all(instance.flushed for instance in tasks):
                break
            await asyncio.sleep(FLUSH_POLL)
        for instance, task in tasks.items():
            instance.leave()
            task.cancel()
        for served in self.routes.values():
            served.conversations.sessions.leave()
        if tasks:
            await asyncio.wait(tasks.values(), timeout=CLOSE_MARGIN)

    # ---- configuration ----

    async def reload(self, *, retry: bool = True) -> None:
        """Read the files and put them to use if they are right; never raises on their content.

        Args:
            retry: try installs that have failed again although no command has changed.
        """
        # One at a time: what one has read before must not win over what another has read since.
        async with self._reloading:
            await self._reload(retry=retry)

    async def _reload(self, *, retry: bool) -> None:
        try:
            loaded, self._seen = await asyncio.to_thread(self._source.read)
        except Exception:
            # What it says stays in force; the tokens, which may say less, are read nevertheless.
            log.exception("fault while reading the configuration")
            loaded = Loaded((), self.settings, (UNREADABLE,), "", found=True)
        scan = await asyncio.to_thread(self._tokens.scan)
        refused = await asyncio.to_thread(self._source.refused)
        keys = await asyncio.to_thread(self._keys.scan)
        manifests = await asyncio.to_thread(self._manifests.scan)
        gone = bool(self.routes) and not loaded.found and not loaded.problems
        if not loaded.problems and not gone:
            await self.baselines.load(loaded.servers)
        scans = (scan, keys, manifests, self.baselines)
        problems = (*loaded.problems, *refused, *(each for one in scans for each in one.problems))
        if gone:  # a last server that is removed leaves a file without servers
            text = "it is gone, and servers.d holds no other file; what it said stays in force"
            problems = (*problems, Problem(str(self.places.servers_json), "", "", text))
        if problems != self.problems:
            for problem in problems:
                log.error("configuration: %s", problem)
            if not problems:
                log.warning("configuration: it is right again")
        self.problems = problems
        for note in manifests.notes if manifests.notes != self.policy.manifests.notes else ():
            log.warning("configuration: %s", note)
        self.policy.put(manifests)
        if not loaded.problems and not gone:
            self._apply(loaded)
            await self._ensure(loaded.enabled, retry=retry)
            for served in self.routes.values():
                served.follow()
        self.trail.learn((served.spec for served in self.routes.values()), manifests.variables)
        await self._look_at_host()
        self.keys.put(keys.records, keys.broken)
        for served in self.routes.values():
            records = scan.records.get(served.spec.instance, ())
            served.admit(index_tokens(served.spec, records))

    async def _look_at_host(self) -> None:
        """Tell once which promises of the sandbox this host does not keep, and who relies on them."""
        facts = await asyncio.to_thread(self._source.host_facts)
        if facts == self.host_facts:
            return
        self.host_facts = facts
        specs = [served.spec for served in self.routes.values() if served.spec.enabled]
        for promise, sentence in broken(facts, specs):
            log.warning("%s", sentence, extra={"MCP_ISOLATION": promise.value})

    async def _ensure(self, specs: tuple[ServerSpec, ...], *, retry: bool) -> None:
        commands = {spec.instance: spec.command for spec in specs}
        if retry or commands != self._ensured:
            self._ensured = commands
            await self.packages.ensure(specs)

    def _apply(self, loaded: Loaded) -> None:
        wanted = {spec.id.path: spec for spec in loaded.servers}
        routes: dict[str, Served] = {}
        added: list[ServerSpec] = []
        for path, spec in wanted.items():
            served = self.routes.get(path)
            if served is None or served.spec.sessions != spec.sessions:
                served = self._add(spec)
                added.append(spec)
            elif served.spec != spec:
                served.configure(spec)
            served.judge(loaded.refused.get(spec.instance))
            routes[path] = served
        gone = [served for path, served in self.routes.items() if routes.get(path) is not served]
        self.routes = routes
        self.loaded += 1
        differs = loaded.host != self.settings
        if differs and not self.restart_wanted:
            log.info("%s", RESTART_WANTED)  # with systemd, apply is about to do so
        self.restart_wanted = differs
        for served in gone:
            name = served.spec.instance
            said = {"MCP_INSTANCE": name}
            log.info("%s: removed from the configuration", name, extra=said)
            served.conversations.end()
            served.instance.retire()
        enabled = [served.spec.instance for served in routes.values() if served.spec.enabled]
        self.runtime.watch(enabled, self._heard)
        self._memory.only(served.spec.instance for served in routes.values())
        self._warn(added)

    def _heard(self, instance: str, news: News) -> None:
        """What others did to a server's unit."""
        served = self.find(instance)
        if served is None:
            return
        match news:
            case News.STOPPED:
                served.stop()
            case News.STARTED:
                served.start()
            case News.LISTENING:
                served.instance.allow()
            case News.RESET:
                served.instance.reset()

    def _warn(self, added: list[ServerSpec]) -> None:
        """Tell what the runtime cannot keep: a line for all servers of which the same is true."""
        alike: dict[str, list[str]] = {}
        for spec in added:
            if sentences := self.runtime.unkept(spec):
                alike.setdefault("; ".join(sentences), []).append(spec.instance)
        for sentence, instances in alike.items():
            log.warning("%s: %s", ", ".join(instances), sentence)

    def _add(self, spec: ServerSpec) -> Served:
        return Served(
            spec,
            index_tokens(spec, ()),
            self.runtime,
            self.packages.command,
            self.settings.limits,
            self._memory,
            self._keep,
            self.policy,
            self.access,
            self.keys,
            self.baselines.of(spec.instance),
        )

    def _keep(self, instance: Instance) -> None:
        """Run it for as long as it lives."""
        task = self._group.create_task(self._run(instance), name=instance.spec.instance)
        self._tasks[instance] = task

    async def _run(self, instance: Instance) -> None:
        """One instance's task; a fault of ours in it must not end the others."""
        try:
            while True:
                try:
                    await instance.run()
                    return
                except Exception:
                    name = instance.spec.instance
                    log.exception("%s: fault in its task", name, extra={"MCP_INSTANCE": name})
                    await asyncio.sleep(FAULT_PAUSE)
        finally:
            self._tasks.pop(instance, None)

    async def _watch(self) -> None:
        """Notice changes of the files, and sessions that have expired."""
        loop = asyncio.get_running_loop()
        swept = loop.time()
        while True:
            try:
                async with asyncio.timeout(POLL):
                    await self.reload_wanted.wait()
            except TimeoutError:
                pass
            try:
                seen = await asyncio.to_thread(self._source.fingerprint)
                asked = self.reload_wanted.is_set()
                if asked or seen != self._seen:
                    self.reload_wanted.clear()
                    await self.reload(retry=asked)
                if loop.time() - swept >= SWEEP:
                    swept = loop.time()
                    for served in self.routes.values():
                        served.sweep()
                    await self._uses.save_sometimes()
                await self.baselines.save()
            except Exception:
                log.exception("fault while keeping the configuration")

    # ---- for people ----

    def find(self, instance: str) -> Served | None:
        """The server of exactly this instance name."""
        for served in self.routes.values():
            if served.spec.instance == instance:
                return served
        return None

    @property
    def healthy(self) -> bool:
        return not self.problems

    def status(self) -> dict[str, object]:
        """What `mcp-bridge list` shows."""
        servers = [describe(served) for served in self.routes.values()]
        return {
            "runtime": self.runtime.name,
            "url": self.url,
            "certificates": [*self.tls.known] if self.tls is not None else [],
            "healthy": self.healthy,
            "problems": [str(problem) for problem in self.problems],
            "loaded": self.loaded,
            "restart_wanted": self.restart_wanted,
            "servers": servers,
        }
