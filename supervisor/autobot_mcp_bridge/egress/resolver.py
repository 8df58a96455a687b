"""Names into addresses that have been checked: one lookup for a connection, and no second one."""

import asyncio
import ipaddress
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from autobot_mcp_bridge.egress.limits import Limits
from autobot_mcp_bridge.egress.refusals import Reason, RefusedError
from autobot_mcp_bridge.model.addresses import is_public
from autobot_mcp_bridge.model.destinations import Destination


@dataclass(frozen=True, slots=True)
class Address:
    """One of a name's, as getaddrinfo(3) gives it and connect(2) takes it."""

    family: int
    sockaddr: tuple[Any, ...]

    @property
    def host(self) -> str:
        return str(self.sockaddr[0])


class Resolver:
    """The host's own resolver (getaddrinfo(3)), in a bounded number of threads.

    A thread cannot be called off: one that is late goes on and counts until it is done.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._threads = ThreadPoolExecutor(limits.lookups, thread_name_prefix="resolve")
        self._running: Counter[str] = Counter()

    async def addresses(self, instance: str, wanted: Destination) -> list[Address]:
        """All addresses of the name, in the order in which they should be tried.

        Args:
            instance: whose connection it is, which has a share of the threads.
            wanted: the name and the port.

        Raises:
            RefusedError: there is none, not in time, or one of them is not public: a name that
                leads to both is not trusted at all.
        """
        is_busy = 2 * self._running.total() >= self._limits.lookups
        limits = self._limits
        own = limits.lookups_assured if is_busy else limits.lookups_per_server
        if self._running[instance] >= own:
            raise RefusedError(Reason.TOO_MANY, "names are being resolved")
        self._running[instance] += 1
        loop = asyncio.get_running_loop()
        lookup = loop.run_in_executor(self._threads, _lookup, wanted)
        lookup.add_done_callback(lambda done: self._done(instance, done))
        try:
            # Shielded: a lookup that is called off while it waits would be done at once.
            async with asyncio.timeout(self._limits.resolve):
                found = await asyncio.shield(lookup)
        except TimeoutError:
            raise RefusedError(Reason.RESOLVE_TIMEOUT) from None
        except OSError as error:
            raise RefusedError(Reason.RESOLVE_FAILED, str(error.strerror)) from None
        for address in found:
            if not is_public(ipaddress.ip_address(address.host)):
                raise RefusedError(Reason.NOT_PUBLIC, address.host)
        return found

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _done(self, instance: str, lookup: "asyncio.Future[list[Address]]") -> None:
        if not lookup.cancelled():
            lookup.exception()  # nobody may be waiting for it any more
        self._running[instance] -= 1
        self._running += Counter()  # forgets those at zero


def _lookup(wanted: Destination) -> list[Address]:
    try:
        found = socket.getaddrinfo(wanted.host, wanted.port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise OSError(0, "not a name") from None
    internet = (socket.AF_INET, socket.AF_INET6)
    return [Address(family, to) for family, _, _, _, to in found if family in internet]
