"""The systemd runtime of this process, with the units of a container."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from autobot_mcp_bridge.channels.hooks import Hooks
from autobot_mcp_bridge.channels.instance import Instance
from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.death import Death
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.runtimes.base import News
from autobot_mcp_bridge.runtimes.systemd import SystemdRuntime
from lab.containers import Container
from support.buses import bus_path
from support.waiting import PATIENCE, WITHIN


class Keeper:
    """The instances of some servers, as the proxy keeps them."""

    def __init__(self, runtime: SystemdRuntime) -> None:
        self.runtime = runtime
        self.instances: dict[str, Instance] = {}
        self.deaths: dict[str, list[Death]] = {}
        self.news: list[tuple[str, News]] = []

    def add(self, spec: ServerSpec) -> Instance:
        deaths = self.deaths.setdefault(spec.instance, [])
        hooks = Hooks(lambda: None, deaths.append, lambda _reason: None)
        instance = Instance(
            spec, self.runtime, lambda spec: Command(spec.command), hooks, max_calls=64
        )
        self.instances[spec.instance] = instance
        return instance

    def heard(self, name: str, news: News) -> None:
        self.news.append((name, news))
        instance = self.instances[name]
        match news:
            case News.STOPPED:
                instance.stop()
            case News.STARTED:
                instance.start()
            case News.LISTENING:
                instance.allow()
            case News.RESET:
                instance.reset()


@asynccontextmanager
async def keeping(container: Container, specs: Iterable[ServerSpec]) -> AsyncIterator[Keeper]:
    """Keep these servers, whose units stand in the container, until the block ends."""
    root = Path(f"/proc/{container.state().leader}/root")
    run = root / "run/mcp-bridge"
    runtime = SystemdRuntime(run, ended=run / "ended", bus=bus_path(container))
    keeper = Keeper(runtime)
    tasks = [asyncio.create_task(keeper.add(spec).run()) for spec in specs]
    runtime.watch(keeper.instances, keeper.heard)
    try:
        async with asyncio.timeout(WITHIN * PATIENCE):
            await runtime.known()
        yield keeper
    finally:
        for instance in keeper.instances.values():
            instance.retire()
            instance.hurry()
        await asyncio.wait(tasks, timeout=10 * PATIENCE)
        for task in tasks:
            task.cancel()
        await runtime.close()
