"""The bus of a container, as the host reaches it, and a watcher that remembers all it tells."""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager

from autobot_mcp_bridge.supervision.unit_events import Changed, Ended
from autobot_mcp_bridge.supervision.unit_paths import Kind
from autobot_mcp_bridge.supervision.watcher import Watcher
from support.waiting import WITHIN, eventually


def bus_path(container):
    """The socket of its system bus: a Unix socket is reached through any mount namespace."""
    return f"/proc/{container.state().leader}/root/run/dbus/system_bus_socket"


class Watching:
    """A running watcher and everything that it has told."""

    def __init__(self, container, library):
        self.container = container
        self.events = []
        self.watcher = Watcher(self.events.append, path=bus_path(container), library=library)

    def told(self, kind, instance=None):
        return [
            event
            for event in self.events
            if isinstance(event, kind) and instance in (None, event.instance)
        ]

    async def tells(self, kind, instance, count=1, *, within=WITHIN):
        """Wait for the `count`-th such event and return it."""
        found = await eventually(
            lambda: self.told(kind, instance)[count - 1 :],
            within=within,
            what=f"{kind.__name__} of {instance} in {self.last(instance)}",
        )
        return found[0]

    def last(self, instance):
        return [event for event in self.events[-50:] if event.instance == instance]

    async def shows(self, instance, kind, *, within=WITHIN, **wanted):
        """Wait until the known state has these values."""

        def has():
            state = self.watcher.state(instance, kind)
            return state and all(getattr(state, key) == value for key, value in wanted.items())

        await eventually(has, within=within, what=f"{wanted} of {instance}.{kind}")

    async def tells_ends(self, count, *, within=30.0):
        """Wait until that many ends have been told."""
        await eventually(
            lambda: len(self.told(Ended)) >= count,
            within=within,
            what=f"{count} ends, there are {len(self.told(Ended))}",
        )

    async def run(self, *words):
        """Run a command in the container while the events go on."""
        done = await asyncio.to_thread(self.container.run, *words)
        return done.checked().out

    def ends(self):
        """How often an end was told of each invocation."""
        return Counter((event.instance, event.invocation) for event in self.told(Ended))

    def changes(self, instance, kind=Kind.SERVICE):
        return [event.state for event in self.told(Changed, instance) if event.kind is kind]


def shape(ended):
    """What distinguishes the causes of ends."""
    return (ended.result, ended.code, ended.status, ended.asked_by_job)


@asynccontextmanager
async def watching(container, library, *instances):
    own = Watching(container, library)
    running = asyncio.create_task(own.watcher.run())
    try:
        own.watcher.watch(instances)
        if instances:
            async with asyncio.timeout(20):
                await own.watcher.settled()
        yield own
    finally:
        running.cancel()
        await asyncio.wait({running})
    assert running.cancelled() or running.exception() is None, running.exception()
