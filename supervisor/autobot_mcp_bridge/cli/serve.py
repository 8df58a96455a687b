"""`mcp-bridge serve`: the proxy in the foreground, with the subprocess runtime."""

import argparse
import asyncio
import json
import logging
import os
import shlex
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.cli import journal
from autobot_mcp_bridge.cli.common import places_of, running_endpoint
from autobot_mcp_bridge.cli.hints import Hints, own_path
from autobot_mcp_bridge.config.certificates import CertificateError
from autobot_mcp_bridge.config.errors import UnavailableError
from autobot_mcp_bridge.config.files import replace_file
from autobot_mcp_bridge.config.headers import write_header
from autobot_mcp_bridge.config.load import load
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.source import AcceptedFile
from autobot_mcp_bridge.config.tokens import TokenStore
from autobot_mcp_bridge.config.tracing import trace_export
from autobot_mcp_bridge.model.errors import BridgeError, UsageError
from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.model.known_values import KnownValues
from autobot_mcp_bridge.policy.audit.trail import AuditTrail
from autobot_mcp_bridge.proxy.bridge import Bridge
from autobot_mcp_bridge.proxy.server import Listening, connectable, listening
from autobot_mcp_bridge.proxy.service import Notifier, given
from autobot_mcp_bridge.proxy.tls import Tls
from autobot_mcp_bridge.runtimes.subprocess import SubprocessRuntime
from autobot_mcp_bridge.supervision.journal import Journal
from autobot_mcp_bridge.units.applied import Applied
from autobot_mcp_bridge.units.packages.commands import Packages

NOT_A_SANDBOX = (
    "the subprocess runtime is not a sandbox: servers see this machine's files and network as their "
    "user does; run only servers that you trust"
)
# Files that one proxy may hold open: a pipe pair a server, a socket a client.
OPEN_FILES = 65536

UNIT = "mcp-bridge-proxy.service"

log = logging.getLogger("autobot_mcp_bridge")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("serve", help="run the proxy in the foreground")
    parser.add_argument(
        "--make-tokens",
        action="store_true",
        help="make a token for each server that has none, into a file for `curl -H @FILE`",
    )
    parser.add_argument(
        "--calls",
        type=Path,
        metavar="FILE",
        help="example calls (JSON: server, tool, arguments) to print once a server is ready",
    )
    parser.add_argument(
        "--systemd",
        action="store_true",
        help="serve what `mcp-bridge apply` has put to use: servers are units",
    )


def run(args: argparse.Namespace) -> int:
    logged = journal.set_up("mcp-bridge-proxy")
    places = places_of(args, adopt_running=False)
    if args.systemd:
        raise_open_files()
        return run_loop(serve_units(places, logged))
    loaded = load(places, units=False)
    if loaded.problems:
        for problem in loaded.problems:
            print(problem, file=sys.stderr)
        return 78  # EX_CONFIG
    if (running := running_endpoint(places)) is not None:
        raise UnavailableError(f"a proxy is running already, pid {running['pid']}")
    if args.make_tokens:
        make_tokens(places)
    raise_open_files()
    log.warning("%s", NOT_A_SANDBOX)
    return run_loop(serve(places, loaded.host, Hints(places, args.calls), logged))


async def serve(places: Places, settings: HostSettings, hints: Hints, logged: KnownValues) -> int:
    """Serve until SIGTERM or SIGINT."""
    stop = _until_signal()
    packages = Packages(places.packages, environ=dict(os.environ), progress=say)
    runtime = SubprocessRuntime(places.state_dir)
    trail = AuditTrail(settings.audit, places, logged)
    tls = await asyncio.to_thread(own_tls, settings)
    bridge = Bridge(places, settings, runtime, packages, tls=tls, trail=trail)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, bridge.reload_wanted.set)
    try:
        async with traced(trail, settings), trail, bridge, listening(bridge, settings) as where:
            announce(places, where)
            try:
                # A certificate is for the name that clients write.
                url = settings.http.public_url if bridge.tls is not None else None
                hints.start(url or connectable(where.url), packages)
                await stop.wait()
                log.info("stopping")
                hints.stop()
                await bridge.close_servers()
            finally:
                places.endpoint_file.unlink(missing_ok=True)
    finally:
        await packages.close()
    return 0


async def serve_units(places: Places, logged: KnownValues) -> int:
    """Serve the accepted configuration until SIGTERM; the servers are units of systemd."""
    from autobot_mcp_bridge.runtimes.systemd import (
        KeptPipes,
        SystemdRuntime,
    )

    source = AcceptedFile(places)
    loaded, _ = await asyncio.to_thread(source.read)
    stop = _until_signal()
    notifier, have = Notifier(), given()
    journal = Journal(notifier, have.stored)
    kept = KeptPipes(notifier, journal)
    kept.find(have.stored)
    runtime = SystemdRuntime(places.runtime_dir, kept=kept, generation=journal.generation)
    trail = AuditTrail(loaded.host.audit, places, logged)
    tls = await asyncio.to_thread(taken_tls, places, loaded.host)
    bridge = Bridge(places, loaded.host, runtime, Applied(source), source, journal, tls, trail)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, bridge.reload_wanted.set)
    async with (
        traced(trail, loaded.host),
        trail,
        bridge,
        listening(bridge, loaded.host, have.sockets) as where,
    ):
        say(f"listening on {where.url}")
        notifier.ready()
        await stop.wait()
        notifier.stopping()
        if await runtime.ends_for_good(UNIT):
            # systemd drops what it holds, and nobody would go on with the servers.
            log.info("stopping")
            await bridge.close_servers()
        else:
            log.info("leaving the servers to the next proxy")
            await where.leave()
            await bridge.leave()
    await notifier.close()
    return 0


def _until_signal() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


@asynccontextmanager
async def traced(trail: AuditTrail, settings: HostSettings) -> AsyncIterator[None]:
    """Have calls traced in the block, where there is a collector; nothing is imported elsewhere.

    What cannot be done of the environment turns traces off and is told: it is no reason for calls
    to be refused.
    """
    export, problems = await asyncio.to_thread(trace_export, settings.tracing, os.environ)
    for problem in problems:
        log.warning("calls are not traced: %s", problem)
    if export is None:
        yield
        return
    from autobot_mcp_bridge.tracing.exporter import Exporter
    from autobot_mcp_bridge.tracing.tracer import Tracer

    async with Exporter(export) as exporter:
        trail.tracer = Tracer(export, exporter)
        yield


def own_tls(settings: HostSettings) -> Tls | None:
    """The certificate that host.toml names, which this user can read.

    Raises:
        UsageError: it is a credential of systemd's.
        CertificateError: it cannot be used.
    """
    named = (settings.tls.certificate, settings.tls.key)
    if None in named:
        return None
    paths = [Path(name) for name in named if name is not None]
    for path in paths:
        if not path.is_absolute():
            raise UsageError(
                "host.toml: $.tls: a credential needs systemd; allowed are absolute paths"
            )
    tls = Tls(*paths)
    try:
        tls.read()
    except CertificateError as error:
        raise CertificateError(f"host.toml: $.tls: {error}") from None
    return tls


def taken_tls(places: Places, settings: HostSettings) -> Tls | None:
    """The certificate that apply has taken; at boot it may be about to do so."""
    if settings.tls.certificate is None:
        return None
    tls = Tls(places.tls_pem, places.tls_pem)
    try:
        tls.read()
    except CertificateError as error:
        log.warning("tls: %s; clients wait for `mcp-bridge apply`", error)
    return tls


def announce(places: Places, where: Listening) -> None:
    """Tell people and the command line where the proxy listens."""
    document = {
        "url": connectable(where.url),
        "operator_url": where.operator_url,
        "pid": os.getpid(),
        "config_dir": str(places.config_dir),
        "state_dir": str(places.state_dir),
    }
    replace_file(places.endpoint_file, json.dumps(document).encode() + b"\n", 0o644)
    say(f"listening on {where.url}, configured in {places.config_dir}")
    program = Path(own_path())
    if program.is_absolute() and shutil.which(program.name) is None:
        say(f"for the commands below: export PATH={shlex.quote(str(program.parent))}:$PATH")


def make_tokens(places: Places) -> None:
    """A token for every server that nobody could call yet; it stands only in its header file."""
    store = TokenStore(places.tokens_d)
    for spec in load(places, units=False).servers:
        if spec.tokens_sha256 or store.list(spec.instance):
            continue
        token, _ = store.new(spec.instance, label="made at the first start")
        path = write_header(places, spec.id, token)
        say(f"made a token for {spec.instance}: {path}")


def say(line: str) -> None:
    print(line, flush=True)


def raise_open_files() -> None:
    """Allow this process as many open files as it may have; servers get limits of their own."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def run_loop(main: Coroutine[Any, Any, int]) -> int:
    """Run on uvloop where it is installed: 10-20 % less CPU, and needed for nothing."""
    runner: Callable[[Coroutine[Any, Any, int]], int]
    try:
        import uvloop
    except ImportError:
        runner = asyncio.run
    else:
        runner = uvloop.run
    try:
        return runner(main)
    except BridgeError as error:
        print(f"mcp-bridge: {error}", file=sys.stderr)
        return error.exit_code
    except BaseExceptionGroup as group:
        match, rest = group.split(BridgeError)
        if rest is not None or match is None:
            raise
        first = match.exceptions[0]
        print(f"mcp-bridge: {first}", file=sys.stderr)
        return getattr(first, "exit_code", 70)
