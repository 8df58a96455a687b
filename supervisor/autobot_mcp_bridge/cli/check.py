"""`mcp-bridge check`: every mistake at once, and nothing started."""

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path

from autobot_mcp_bridge.cli.common import (
    Subparsers,
    note,
    places_of,
    print_json,
    print_table,
    printable,
)
from autobot_mcp_bridge.config import enforced, refused
from autobot_mcp_bridge.config.certificates import (
    Certificate,
    CertificateError,
    certificate_of,
    read_pair,
)
from autobot_mcp_bridge.config.errors import DataError, MissingError
from autobot_mcp_bridge.config.keys import KeyStore
from autobot_mcp_bridge.config.load import Loaded, load
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.problem import Problem
from autobot_mcp_bridge.config.tokens import TokenStore
from autobot_mcp_bridge.model import promises
from autobot_mcp_bridge.model.promises import Facts
from autobot_mcp_bridge.model.states import State
from autobot_mcp_bridge.policy.manifest.load import ManifestFiles, Manifests
from autobot_mcp_bridge.runtimes.subprocess.unkept import unkept
from autobot_mcp_bridge.units.apply import Applier
from autobot_mcp_bridge.units.packages.live import weaker
from autobot_mcp_bridge.units.sandbox import network, resolvers
from autobot_mcp_bridge.units.systemctl import has_systemd


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("check", help="report every mistake in the configuration")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument(
        "--host", action="store_true", help="show what this host keeps of the sandbox, and why not"
    )


def run(args: argparse.Namespace) -> int:
    places = places_of(args)
    if not places.config_dir.is_dir():
        raise MissingError(f"{places.config_dir}: no such directory")
    loaded = load(places)
    has_units = places.accepted.exists() and has_systemd()
    # What the proxy's unit has in its environment is not known here.
    environ, shared = None if has_units else os.environ, loaded.host.rates.redis is not None
    manifests = ManifestFiles(places.manifests_d, environ, shared=shared).scan()
    scans = (TokenStore(places.tokens_d).scan(), KeyStore(places.keys_d).scan(), manifests)
    problems = (*loaded.problems, *(each for scan in scans for each in scan.problems))
    if has_units and not problems and os.geteuid() == 0:
        problems = _refusals(places)
    else:
        problems += tuple(problem for each in loaded.lacking.values() for problem in each)
    certificate, refusal = _certificate(places, loaded, has_units=has_units)
    problems = (*problems, *refusal)
    facts = enforced.read(places.enforced) if has_units else {}
    if args.host and not args.json:
        return _show_host(facts)
    # What a definition with a mistake lets through is no question yet.
    notes = [] if loaded.problems else [*_notes(loaded, facts, has_units=has_units)]
    if certificate is not None:
        notes.append(_counts(certificate))
    notes += [*manifests.notes, *_without_manifest(loaded, manifests)]
    if args.json:
        print_json(
            {
                "ok": not problems,
                "servers": [spec.instance for spec in loaded.servers],
                "problems": [problem.as_data() for problem in problems],
                "notes": notes,
                "host": {name: {"kept": it.kept, "why": it.why} for name, it in facts.items()},
            }
        )
        return DataError.exit_code if problems else 0
    for problem in problems:
        print(printable(str(problem)))
    if problems:
        note(f"{len(problems)} mistake{'s' if len(problems) > 1 else ''} in {places.config_dir}")
        return DataError.exit_code
    for sentence in notes:
        note(sentence)
    off = len(loaded.servers) - len(loaded.enabled)
    right = len(loaded.enabled)
    are = "server is" if right == 1 else "servers are"
    disabled = f", {off} more {'is' if off == 1 else 'are'} disabled" if off else ""
    print(f"{places.config_dir}: {right} {are} right{disabled}")
    return 0


def _without_manifest(loaded: Loaded, manifests: Manifests) -> Iterator[str]:
    """Servers whose callers may do nothing."""
    for spec in loaded.enabled if manifests.present else ():
        kind = spec.agent.type
        checked = manifests.by_type.get(kind or "")
        if kind is not None and (checked is None or spec.name not in checked.proxies):
            where = (
                "no manifest" if checked is None else "a manifest that does not name this server"
            )
            yield f"{spec.instance}: agents of type {kind} have {where}, and may do nothing"


def _show_host(facts: Facts) -> int:
    if not facts:
        raise MissingError(
            "nothing is known of this host: `mcp-bridge apply` finds it out, as root"
        )
    rows = [(name, "yes" if it.kept else "no", it.why or name.says) for name, it in facts.items()]
    print_table(("PROMISE", "KEPT", "WHICH IS, OR WHY NOT"), rows)
    return 0


def _refusals(places: Places) -> tuple[Problem, ...]:
    """What apply would refuse, or not start: it looks at the host, too, such as for a path."""
    try:
        found = Applier(places, say=lambda _line: None).plan()
    except DataError as error:
        return tuple(map(refused.problem, str(error).splitlines()))
    return tuple(
        Problem("", server.spec.instance, "", server.refused or server.why)
        for server in found.accepted.servers
        if server.refused or server.state in {State.CREDENTIAL_MISSING, State.INSTALL_FAILED}
    )


def _certificate(
    places: Places, loaded: Loaded, *, has_units: bool
) -> tuple[Certificate | None, tuple[Problem, ...]]:
    """What the files of `tls` hold, or why it cannot be used; of units' only root can tell."""
    tls = loaded.host.tls
    if tls.certificate is None or tls.key is None or (has_units and os.geteuid() != 0):
        return None, ()
    try:
        if has_units:
            return Applier(places, say=lambda _line: None).certificate.look(tls), ()
        if not (Path(tls.certificate).is_absolute() and Path(tls.key).is_absolute()):
            raise CertificateError("a credential needs systemd; allowed are absolute paths")
        return certificate_of(read_pair(Path(tls.certificate), Path(tls.key))), ()
    except CertificateError as error:
        return None, (Problem(str(places.host_toml), "$.tls", "", str(error)),)


def _counts(certificate: Certificate) -> str:
    days = int((certificate.expires - time.time()) // 86400)
    until = time.strftime("%Y-%m-%d", time.gmtime(certificate.expires))
    names = ", ".join(certificate.names)
    return f"tls: the certificate for {names} counts for {days} days more, until {until}"


def _notes(loaded: Loaded, facts: Facts, *, has_units: bool) -> Iterator[str]:
    if has_units:
        yield from _reach(loaded)
        yield from (sentence for _, sentence in promises.broken(facts, loaded.enabled))
    else:
        yield from _unkept(loaded)
    yield from _weaker(loaded)


def _reach(loaded: Loaded) -> Iterator[str]:
    """What the network mode of each server lets through, where that is not nothing at all."""
    found = resolvers.read()
    for spec in loaded.enabled:
        if sentence := network.sentence(spec, found):
            yield f"{spec.instance}: {sentence}"


def _weaker(loaded: Loaded) -> Iterator[str]:
    for spec in loaded.enabled:
        if sentence := weaker(spec):
            yield f"{spec.instance}: {sentence}"


def _unkept(loaded: Loaded) -> Iterator[str]:
    """What each server asks for and the subprocess runtime cannot keep, once per server."""
    for spec in loaded.enabled:
        if sentences := unkept(spec):
            yield f"{spec.instance}: {'; '.join(sentences)}"
