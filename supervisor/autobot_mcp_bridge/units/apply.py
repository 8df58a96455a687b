"""Putting the wanted configuration to use with systemd: root's part.

Each step leaves a state that the next run completes: what is to change is written down first
(unfinished.py), drop-ins are replaced at once, accepted.json last, and what goes is taken out of
accepted.json before its units go.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from autobot_mcp_bridge.config import accepted, enforced, refused
from autobot_mcp_bridge.config.certificates import CertificateError
from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.config.files import locked, replace_file
from autobot_mcp_bridge.config.load import Loaded
from autobot_mcp_bridge.config.places import Places, resolve_places
from autobot_mcp_bridge.config.problem import json_path, show_value
from autobot_mcp_bridge.config.relations import lacking
from autobot_mcp_bridge.config.watch import fingerprint, stable_read
from autobot_mcp_bridge.egress import allowed
from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.host import Environment, HostSettings, Tls
from autobot_mcp_bridge.model.names import ServerId
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units import credentials, rotations, unfinished
from autobot_mcp_bridge.units.access import rights
from autobot_mcp_bridge.units.access.reach import SYSTEM_PATH
from autobot_mcp_bridge.units.addresses import Addresses
from autobot_mcp_bridge.units.certificate import Taking
from autobot_mcp_bridge.units.drafts import Host
from autobot_mcp_bridge.units.fetch.fetches import Fetches
from autobot_mcp_bridge.units.host import static
from autobot_mcp_bridge.units.instances import (
    DROP_IN,
    UNITS,
    folder_of,
    service_of,
    socket_of,
)
from autobot_mcp_bridge.units.packages import remote
from autobot_mcp_bridge.units.packages.live import is_live
from autobot_mcp_bridge.units.packages.resolve import resolve
from autobot_mcp_bridge.units.packages.specs import PackageSpec, parse_command
from autobot_mcp_bridge.units.packages.store import Store
from autobot_mcp_bridge.units.plan import Plan, plan
from autobot_mcp_bridge.units.removal import Removal
from autobot_mcp_bridge.units.sandbox import exposure, limits, names, probe, resolvers
from autobot_mcp_bridge.units.sandbox.confinement import Facts
from autobot_mcp_bridge.units.sandbox.image_look import Roots
from autobot_mcp_bridge.units.systemctl import (
    SystemctlError,
    daemon_reload,
    run_tool,
    systemctl,
    systemctl_each,
)
from autobot_mcp_bridge.units.unfinished import Unfinished

# The files are read until they hold still, so that one run does for a burst of changes; a manager
# that never does is waited for no longer than so many rounds, and starts the next run.
MAX_ROUNDS = 10
_FOLDER = re.compile(r"autobot-mcp-bridge@(.+)\.service\.d")


@dataclass(frozen=True, slots=True)
class Applier:
    """One host.

    Attributes:
        say: gets a line for people at each step.
        purge: delete the files of removed servers, too.
        retry: try installs again that have failed for the same configuration.
    """

    places: Places
    say: Callable[[str], None]
    units: Path = UNITS
    facts: Facts = field(default_factory=Facts)
    purge: bool = False
    retry: bool = True

    def plan(self) -> Plan:
        """Read the files and compare.

        Raises:
            DataError: they hold a mistake of form; nothing is changed. What only turns out when
                a server's unit is to be made is that server's own trouble.
        """
        return self._planned(stable_read(self.places, units=True)[0])

    def _planned(self, loaded: Loaded) -> Plan:
        if loaded.problems:
            raise DataError("\n".join(map(str, loaded.problems)))
        if not loaded.found and self.existing():
            text = "it is gone, and servers.d holds no other file; what it said stays in force"
            raise DataError(f"{self.places.servers_json}: {text}")
        store, fetches = self._fetches()
        # Not the caller's: by hand or as a unit, a bare name means the same program.
        environ = {"PATH": os.pathsep.join(SYSTEM_PATH)}

        before = self._before()
        # Those in force, too: one may have to stay in the place of what the files say.
        roots = Roots((*loaded.enabled, *(server.spec for server in before.servers)))

        def resolved(spec: ServerSpec) -> Command | PackageSpec:
            if (own := roots.command(spec)) is not None:
                return own
            if spec.url is not None:
                return remote.command(spec, self.facts.program, units=True)
            found = resolve(spec.command, store, environ, live=is_live(spec))
            if isinstance(found, PackageSpec):
                fetches.refuse_failed(found, loaded.digest)
            return found

        facts = replace(self._facts(), resolvers=resolvers.read())
        self._check(loaded.host.tls)
        ports = self.addresses.plan(loaded.host, before.host)

        def refusals(spec: ServerSpec) -> Iterator[str]:
            for loc, value, clause in lacking(spec):
                yield f"{json_path(loc)}: {show_value(value, loc)}: {clause}"
            yield from rights.refusals(spec)
            yield from roots.refusals(spec)

        host = Host(
            resolved,
            facts,
            refusals,
            missing_secrets=lambda spec: credentials.missing(spec, facts),
            over=exposure.over,
            distrusted=roots.distrusts,
            rotations=rotations.read(self.places.state_dir),
        )
        return replace(plan(loaded, host, before, self.existing()), ports=ports)

    def _check(self, tls: Tls) -> None:
        """Refuse another certificate than that in force, if it cannot be used."""
        if tls != self._before().host.tls:
            try:
                self.certificate.look(tls)
            except CertificateError as error:
                raise DataError(f"host.toml: $.tls: {error}") from None

    @property
    def addresses(self) -> Addresses:
        return Addresses(self.units, self.say)

    def apply(self) -> Plan:
        """Plan and carry out, again until the files hold still; the last plan.

        Raises:
            DataError: as `plan`.
            UnavailableError: another run holds the lock for too long.
            SystemctlError: systemd refused; the next run completes what was begun.
        """
        self.places.state_dir.mkdir(parents=True, exist_ok=True)
        self.lay()
        with locked(self.places.state_dir):
            fetches = self._fetches()[1]
            fetches.take_in()
            if self.retry:
                fetches.forget_failed()
            for _ in range(MAX_ROUNDS):
                # Whatever the files say: a renewal does not wait for somebody to mend servers.json.
                trouble = self._renew(self._before().host.tls)
                loaded, seen = stable_read(self.places, units=True)
                try:
                    wanted = self._planned(loaded)
                except DataError as error:
                    refused.write(self.places.refused, f"{error}\n{trouble}".strip())
                    raise
                refused.write(self.places.refused, trouble)
                self._carry_out(wanted)
                if fingerprint(self.places) == seen:
                    break
        return wanted

    def _renew(self, tls: Tls) -> str:
        """Have the proxy given the certificate that its files hold now; why not, if it cannot be."""
        certificate = self.certificate
        trouble = certificate.take(tls)
        if certificate.watch(tls):
            trouble = certificate.take(tls)  # nobody has watched until now
        if trouble:
            self.say(trouble)
        return trouble

    @property
    def certificate(self) -> Taking:
        return Taking(self.places, self._facts(), self.units, self.say)

    def _facts(self) -> Facts:
        return replace(self.facts, are_encrypted=_names(self.places.encrypted_credentials))

    def lay(self) -> None:
        """Have what somebody has deleted of the product's directories there again, with its rights.

        Else root would make them anew, and the proxy's group could not read them.
        """
        if not self._is_host:
            return
        try:
            run_tool("systemd-tmpfiles", "--create", Path(static.FILES["tmpfiles.conf"]).name)
        except SystemctlError as error:
            self.say(str(error))

    def try_host(self) -> None:
        """Find out what this host keeps of the sandbox: once a boot, and whenever a person asks.

        It takes a second, for which nobody waits with the lock or for a change.
        """
        if not self._is_host or (enforced.read(self.places.enforced) and not self.retry):
            return
        facts = probe.try_host(self.places.runtime_dir)
        enforced.write(self.places.enforced, facts)

    @property
    def _is_host(self) -> bool:
        return self.places == resolve_places(uid=0, environ={})

    def purge_files(self, server: ServerId) -> bool:
        """Delete what a removed server has left, whichever run has removed it; whether it is so."""
        with locked(self.places.state_dir):
            if server.instance in accepted.read(self.places.accepted).instances:
                return False  # it has been added again
            self._removal.purge(server)
        return True

    @property
    def _removal(self) -> Removal:
        return Removal(self.places, self.facts, self.units, self.say)

    def existing(self) -> dict[str, str]:
        """Instance to the text of its drop-in; an unreadable one is to be written again."""
        found = {}
        for path in self.units.glob(f"autobot-mcp-bridge@*.service.d/{DROP_IN}"):
            match = _FOLDER.fullmatch(path.parent.name)
            if match is not None:
                found[match[1]] = path.read_text(encoding="utf-8", errors="replace")
        return found

    def _before(self) -> accepted.Accepted:
        """What is in force; nothing, where the file is not what it was: it is made anew then."""
        try:
            return accepted.read(self.places.accepted)
        except DataError:
            return accepted.Accepted()  # the proxy tells what is wrong

    def _carry_out(self, wanted: Plan) -> None:
        before = self._before()
        left = unfinished.left(self.places.state_dir)
        todo = (left or Unfinished()) | self._begun(wanted, before)
        has_units = wanted.has_units or left is not None
        if has_units or todo != Unfinished():
            unfinished.begin(self.places.state_dir, todo)
        if wanted.removed:
            accepted.write(self.places.accepted, before.without(wanted.removed, wanted.accepted))
            self.say(f"removing {_count(len(wanted.removed), 'server')}")
            self._removal.stop(wanted.removed)
        # One that is only disabled keeps its tokens and files.
        gone = {*wanted.removed, *before.instances} - wanted.accepted.instances
        self._removal.forget(gone, purge=self.purge)
        self._removal.unlink(wanted.removed)
        added = todo.added & wanted.texts.keys()
        there = self.existing() if todo.changed else {}
        for instance in (*wanted.added, *wanted.changed):
            self._write(instance, wanted.texts[instance])
        self._each("enable", added, "--no-reload")
        if has_units:
            self.say("systemd reads its units again")
            daemon_reload()
        self._limit(todo.changed & wanted.texts.keys(), there, wanted)
        if added:
            self.say(f"starting {_count(len(added), 'socket')}")
            self._each("start", added)
        # Before the proxy hears of a server, and before it is started.
        allowed.write(
            self.places.egress, names.allowed(server.spec for server in wanted.accepted.servers)
        )
        if before.host.tls != wanted.accepted.host.tls:
            self._renew(wanted.accepted.host.tls)
        if self._before() != wanted.accepted:
            accepted.write(self.places.accepted, wanted.accepted)
            self._fetches()[1].leave(_packages(wanted.accepted))
        moved = self.addresses.change(
            {unit: text for unit, text in wanted.ports.items() if unit in todo.ports}
        )
        if not moved and todo.proxy:
            self.say("restarting the proxy, whose settings have changed; its servers stay")
            systemctl("try-restart", [static.PROXY])
        unfinished.end(self.places.state_dir)
        if wanted.missing:
            self.say(f"{_count(len(wanted.missing), 'package')} to be installed")
            passed = wanted.accepted.host.environment.pass_
            self._fetches()[1].start(wanted.missing, passed, wanted.accepted.digest)

    def _begun(self, wanted: Plan, before: accepted.Accepted) -> Unfinished:
        """What this run is to change."""
        return Unfinished(
            frozenset(wanted.added),
            frozenset(wanted.changed),
            frozenset(self.addresses.differing(wanted.ports)),
            _of_proxy(before.host) != _of_proxy(wanted.accepted.host),
        )

    def _each(self, verb: str, instances: Iterable[str], *options: str) -> None:
        """Do it with their sockets; one that is masked or broken is its server's own trouble."""
        for unit, why in systemctl_each(verb, map(socket_of, instances), *options).items():
            self.say(f"{unit}: {why}; see `systemctl status {unit}`")

    def _limit(self, changed: Iterable[str], there: Mapping[str, str], wanted: Plan) -> None:
        """Change limits of what runs: those that differ, and all of what another run had begun."""
        mine = {*wanted.changed}
        limits.change(
            {
                service_of(name)
                for name in changed
                if name not in mine
                or limits.limits_of(there.get(name, "")) != limits.limits_of(wanted.texts[name])
            }
        )

    def _fetches(self) -> tuple[Store, Fetches]:
        store = Store(self.places.packages)
        return store, Fetches(self.places.state_dir, store)

    def _write(self, instance: str, text: str) -> None:
        folder = folder_of(self.units, instance)
        folder.mkdir(mode=0o755, exist_ok=True)
        replace_file(folder / DROP_IN, text.encode(), 0o644)


def _of_proxy(host: HostSettings) -> HostSettings:
    """What the proxy reads when it starts: all but what is for installs."""
    return host.model_copy(update={"environment": Environment()})


def _packages(found: accepted.Accepted) -> Iterable[PackageSpec]:
    """What the enabled servers' commands need installed."""
    for server in found.servers:
        if server.spec.enabled and server.spec.command and not is_live(server.spec):
            with suppress(ValueError):  # its state says what is wrong with it
                if (package := parse_command(server.spec.command)) is not None:
                    yield package


def _names(directory: Path) -> frozenset[str]:
    return frozenset(path.name for path in directory.glob("*"))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
