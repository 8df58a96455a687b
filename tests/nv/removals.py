"""A named switch for each NV behaviour that takes it away, for tests/nv/test_removal.py only.

Each replaces one attribute of the package in a running process (site/sitecustomize.py applies it
in the proxy and in the command line). A switch whose target is no longer there raises, so that it
cannot go stale unseen: the behaviour stays, the test passes, and test_removal.py fails.
"""

import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any


def swap(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Replace an attribute that exists by what `make` makes of it."""
    setattr(owner, name, make(getattr(owner, name)))


def one_process() -> None:
    """Each start makes two processes, one of which nobody uses."""
    from autobot_mcp_bridge.runtimes.subprocess.runtime import SubprocessRuntime

    def twice(start):
        async def started(self, spec, command, slot):
            await start(self, spec, command, slot)
            return await start(self, spec, command, slot)

        return started

    swap(SubprocessRuntime, "start", twice)


def no_shell() -> None:
    from autobot_mcp_bridge.runtimes.subprocess import runtime

    def through_a_shell(spawn):
        def spawned(order, mains):
            # $ and ` stay what they are to a shell inside double quotes.
            line = " ".join(f'"{word}"' for word in order.argv)
            return spawn(replace(order, argv=["/bin/sh", "-c", f"exec {line}"]), mains)

        return spawned

    swap(runtime, "spawn", through_a_shell)


def clean_environment() -> None:
    import os

    from autobot_mcp_bridge.runtimes.subprocess import runtime

    def inherited(environment):
        return lambda *words: {**os.environ, **environment(*words)}

    swap(runtime, "environment", inherited)


def private_directory() -> None:
    from autobot_mcp_bridge.runtimes.subprocess import identity

    swap(identity, "_OWN_MODE", lambda _: 0o755)


def own_directory() -> None:
    from pathlib import PurePosixPath

    from autobot_mcp_bridge.model.names import ServerId

    swap(ServerId, "directory", lambda _: property(lambda self: PurePosixPath("a", "b", self.name)))


def limited_files_and_cores() -> None:
    """The launcher is a program of its own, so its copy without limits is started instead."""
    import tempfile
    from pathlib import Path

    from autobot_mcp_bridge.runtimes.subprocess import spawn

    def unlimited(launcher):
        text = launcher.read_text(encoding="utf-8")
        without = text.replace("resource.setrlimit(", "(lambda *_: None)(")
        assert without != text
        folder = Path(tempfile.mkdtemp(prefix="mcp-bridge-test-"))
        copy = folder / launcher.name
        copy.write_text(without, encoding="utf-8")
        return copy

    swap(spawn, "LAUNCHER", unlimited)


def limited_memory() -> None:
    from autobot_mcp_bridge.runtimes.subprocess.runtime import SubprocessRuntime

    swap(SubprocessRuntime, "_exceeded", lambda _: lambda self, invocation, figures: None)


def idle_stop() -> None:
    from autobot_mcp_bridge.channels.instance import Instance

    swap(Instance, "_until_idle", lambda _: lambda self, channel, now: None)


def restart() -> None:
    """One crash opens the breaker."""
    from autobot_mcp_bridge.supervision import breaker

    def for_good(crashed):
        def opened(self, now):
            crashed(self, now)
            self.state = breaker.BreakerState.OPEN
            self._opened = now

        return opened

    swap(breaker.Breaker, "crashed", for_good)


def breaker_opens() -> None:
    from autobot_mcp_bridge.supervision.breaker import Breaker

    swap(Breaker, "may_start", lambda _: lambda self, now: True)
    swap(Breaker, "crashed", lambda _: lambda self, now: None)


def aiohttp_serves() -> None:
    sys.modules["aiohttp"] = None  # type: ignore[assignment] # an import of it fails from now on


def url() -> None:
    from autobot_mcp_bridge.model.names import ServerId

    swap(ServerId, "path", lambda _: property(lambda self: f"/s/{self.instance}/mcp"))


def only_the_digest_is_stored() -> None:
    from autobot_mcp_bridge.config import tokens

    def with_the_token(make):
        def made(label, expires):
            token, record = make(label, expires)
            return token, replace(record, label=token)

        return made

    swap(tokens, "_make", with_the_token)


def only_the_own_token_counts() -> None:
    from autobot_mcp_bridge.policy.principals import TokenIndex

    def any_counts(find):
        return lambda self, digest: next(iter(self._by_digest.values()), None)

    swap(TokenIndex, "find", any_counts)


def unknown_looks_like_known() -> None:
    from aiohttp import web

    from autobot_mcp_bridge.proxy.endpoint import Endpoint

    def telling(serve):
        async def served(self, request):
            if request.rel_url.raw_path not in self._authenticate.bridge.routes:
                return web.Response(status=404)
            return await serve(self, request)

        return served

    swap(Endpoint, "_serve", telling)


def listing_is_checked() -> None:
    from autobot_mcp_bridge.policy.tools import ToolRule

    swap(ToolRule, "listed", lambda _: lambda self, result: result)


def calling_is_checked() -> None:
    """Only calling: `listed` goes on with the rule as it was."""
    from autobot_mcp_bridge.policy.tools import ToolRule

    allows = ToolRule.allows

    def still_listed(listed):
        def with_the_rule(self, result):
            kept = [tool for tool in result["tools"] if allows(self, tool["name"])]
            return {**result, "tools": kept}

        return with_the_rule

    swap(ToolRule, "listed", still_listed)
    swap(ToolRule, "allows", lambda _: lambda self, name: True)


def health() -> None:
    from autobot_mcp_bridge.proxy import server

    def unhealthy(front):
        from aiohttp import web

        def without(*words):
            handle = front(*words)

            async def served(request):
                if request.path == "/healthz":
                    return web.Response(status=404)
                return await handle(request)

            return served

        return without

    swap(server, "front", unhealthy)


def metrics() -> None:
    from autobot_mcp_bridge.proxy import operator

    swap(operator, "exposition", lambda _: lambda bridge: b"")


def rereading() -> None:
    from autobot_mcp_bridge.config import source

    swap(source, "fingerprint", lambda _: lambda _places: "")
    swap(
        source, "stable_read", lambda read: lambda places, units: (read(places, units=units)[0], "")
    )


# Switch: the tests that it must break, by name.
REMOVALS: dict[str, tuple[Callable[[], None], str]] = {
    "NV-01": (one_process, "test_each_server_is_one_child_process_however_many_sessions_it_has"),
    "NV-02": (no_shell, "test_a_command_reaches_its_server_word_by_word"),
    "NV-03": (clean_environment, "test_nothing_of_the_hosts_environment_reaches_a_server"),
    "NV-04 mode": (private_directory, "test_a_server_works_in_a_private_directory_of_its_own"),
    "NV-04 path": (own_directory, "test_a_server_works_in_a_private_directory_of_its_own"),
    "NV-05 files": (limited_files_and_cores, "test_open_files_and_cores_of_a_server_are_limited"),
    "NV-05 memory": (limited_memory, "test_a_server_that_takes_more_memory_than_it_may_is_ended"),
    "NV-06": (idle_stop, "test_a_server_without_calls_is_stopped_and_wakes_on_the_next"),
    "NV-07 restart": (restart, "test_a_crashed_server_is_started_again_for_the_next_call"),
    "NV-07 breaker": (breaker_opens, "test_the_sixth_crash_within_a_minute_keeps_a_server_down"),
    "NV-08": (aiohttp_serves, "test_http_is_served_by_aiohttp"),
    "NV-09": (url, "test_a_servers_url_names_tenant_project_and_server"),
    "NV-10 stored": (only_the_digest_is_stored, "test_a_token_is_stored_as_its_sha256_only"),
    "NV-10 own": (only_the_own_token_counts, "test_a_server_takes_its_own_token_and_no_other"),
    "NV-11": (
        unknown_looks_like_known,
        "test_a_foreign_token_learns_nothing_about_which_servers_exist",
    ),
    "NV-12 listing": (listing_is_checked, "test_only_allowed_tools_are_listed"),
    "NV-12 calling": (calling_is_checked, "test_only_allowed_tools_can_be_called"),
    "NV-13 health": (health, "test_health_and_metrics_are_served"),
    "NV-13 metrics": (metrics, "test_health_and_metrics_are_served"),
    "NV-14": (rereading, "test_a_changed_configuration_is_in_force_without_a_restart"),
}


def apply(name: str) -> None:
    REMOVALS[name][0]()


def show(name: str) -> str:
    """Return the command line that takes a behaviour away and runs its test by hand."""
    switch = shlex.quote(f"MCP_BRIDGE_TEST_REMOVE={name}")
    path = "PYTHONPATH=tests/nv/site:tests/nv"
    return f"env {switch} {path} pytest tests/nv/test_nv.py -k {REMOVALS[name][1]}"
