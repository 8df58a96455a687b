"""Two hosts, one of each suite, that a run of site.yml has made serve; and load on them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lab import recipe
from lab.containers import Container
from lab.places import Lab
from rollout.playbooks import Rollout, Run
from rules.tree import ROOT
from support.bridge import new_token
from support.load import Load
from support.product import Product, digest_of, echo, url_of
from support.proxy_unit import KeptSession

FAKES = "/opt/mcp-servers"
SESSIONS = 10  # of each host's load
ENOUGH = 100  # calls, before and after what is watched
PATIENT = 60.0  # seconds that the official clients wait for an answer, unless told otherwise
PAUSE = 0.1  # seconds between two calls of one: Ansible needs the processors, too


class Served:
    """The hosts, each with a server `echo` that one token opens.

    Attributes:
        names: of the hosts, as the inventory orders them: the first is the canary.
        variables: of every run.
    """

    def __init__(self, lab: Lab, folder: Path, prefix: str, *servers: dict[str, Any]) -> None:
        suites = {f"{prefix}-{suite}": suite for suite in recipe.SUITES}
        self.names = [*suites]
        self.rollout = Rollout(lab, folder, suites)
        self.containers: list[Container] = []
        self.token = new_token()
        first = echo("echo", tokens_sha256=[digest_of(self.token)], timeouts={"idle": "0s"})
        self.variables = {"mcp_bridge_servers_definitions": [first, *servers]}
        self.bare: Run | None = None

    def up(self, *bare: str) -> "Served":
        """Boot them, look what these playbooks say of bare hosts, and have them serve."""
        self.containers = self.rollout.up()
        for container in self.containers:
            container.copy(ROOT / "tests" / "servers", FAKES)
        for playbook in bare:
            self.run(playbook, "--check", "--diff").checked()
        self.run("site.yml").checked()
        return self

    def down(self) -> None:
        for container in self.containers:
            container.down()

    def run(self, playbook: str, *words: str, **variables: Any) -> Run:
        return self.rollout.run(playbook, *words, **{**self.variables, **variables})

    async def run_meanwhile(self, playbook: str, *words: str, **variables: Any) -> Run:
        """The same while the event loop, and so the load, goes on."""
        return await asyncio.to_thread(self.run, playbook, *words, **variables)

    def session(self, container: Container, token: str, name: str = "echo") -> KeptSession:
        made = KeptSession(url_of(name), token)
        made.dial = Product(container).dial
        return made

    @asynccontextmanager
    async def load(self, *tokens: str) -> AsyncIterator[Load]:
        """Steady calls on every host, with these tokens, one for each, or the inventory's."""
        clients = [
            self.session(container, token)
            for container, token in zip(
                self.containers, tokens or [self.token] * len(self.containers), strict=True
            )
            for _ in range(SESSIONS)
        ]
        try:
            for client in clients:
                await client.initialize()
            async with Load(clients, PAUSE, within=PATIENT) as load:
                await load.more(ENOUGH)
                yield load
                await load.more(ENOUGH)
        finally:
            for client in clients:
                await client.drop()
