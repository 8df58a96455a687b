"""Packages that a sandboxed unit installs (mcp-bridge-fetch@.service): root's side of it.

<state>/fetch.d/requests/<id>.json   what a unit is to install; root's alone
<state>/fetch.d/results/<id>.json    a spool: how installs have ended, until apply takes it in
<state>/fetch.d/known/<id>.json      the same, taken in
"""

import base64
import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.config.files import replace_file
from autobot_mcp_bridge.units.packages.job import InstallError
from autobot_mcp_bridge.units.packages.node import WHEEL
from autobot_mcp_bridge.units.packages.specs import Kind, PackageSpec
from autobot_mcp_bridge.units.packages.store import Store
from autobot_mcp_bridge.units.systemctl import SystemctlError, run_tool, systemctl

DIRECTORY = "fetch.d"
FORMAT = 1
UPGRADE = "upgrade"  # in the place of a configuration's digest: its failure counts for none
# Beyond the unit's own TimeoutStartSec= and TimeoutStopSec=.
INSTALL_TIMEOUT = 30 * 60.0
_PRIVATE = 0o600
_ID_LENGTH = 16  # base32 characters: the unit's user has them in its name, of at most 31


@dataclass(frozen=True, slots=True)
class Request:
    """One package to install.

    Attributes:
        passed: names of variables that the installers get (host.toml, `[environment] pass`).
        digest: of the configuration that asked; a failure counts for that one.
        upgrade: the newest version is wanted, whatever the store holds, if it has these programs;
            None is the package's own one.
    """

    package: PackageSpec
    passed: tuple[str, ...]
    digest: str
    upgrade: tuple[str | None, ...] = ()

    def encode(self) -> bytes:
        document = {
            "format": FORMAT,
            **as_document(self.package),
            "pass": self.passed,
            "digest": self.digest,
            "upgrade": self.upgrade,
        }
        return json.dumps(document, indent=1).encode() + b"\n"

    @classmethod
    def decode(cls, text: bytes) -> "Request":
        """Read what `encode` wrote.

        Raises:
            InstallError: it is something else.
        """
        try:
            found = json.loads(text)
            if found["format"] != FORMAT:
                raise ValueError("of another format")
            passed, digest = tuple(map(str, found["pass"])), str(found["digest"])
            upgrade = tuple(name and str(name) for name in found.get("upgrade", ()))
            return cls(from_document(found), passed, digest, upgrade)
        except (ValueError, LookupError, TypeError) as error:
            raise InstallError(f"not a request for a package: {error}") from None


def as_document(spec: PackageSpec) -> dict[str, object]:
    """What is installed, as JSON has it; which program is run does not matter."""
    return {
        "kind": spec.kind,
        "name": spec.name,
        "version": spec.version,
        "exact": spec.exact,
        "extras": spec.extras,
        "needs": spec.needs,
    }


def from_document(found: Any) -> PackageSpec:
    """Read what `as_document` made.

    Raises:
        ValueError, LookupError, TypeError: it is something else.
    """
    kind, name, version = Kind(found["kind"]), str(found["name"]), found["version"]
    exact, extras = bool(found["exact"]), tuple(map(str, found["extras"]))
    needs = tuple(map(str, found.get("needs", ())))  # a request of an older program has none
    return PackageSpec(kind, name, version, exact, None, (), extras, needs)


@dataclass(frozen=True, slots=True)
class Result:
    """How an install has ended.

    Attributes:
        why: the installer's own words; empty when it is in the store.
        needs_node: it wants a node that this host does not have, and nothing else failed.
        digest: the request's.
    """

    why: str = ""
    needs_node: bool = False
    digest: str = ""


def package_id(spec: PackageSpec) -> str:
    """The unit's instance: the same for everything that one install serves."""
    digest = hashlib.sha256(repr(spec.package).encode()).digest()
    return base64.b32encode(digest)[:_ID_LENGTH].decode().lower()


def unit(spec: PackageSpec) -> str:
    return f"mcp-bridge-fetch@{package_id(spec)}.service"


def running() -> frozenset[str]:
    """Ids of the packages that units install now.

    Raises:
        SystemctlError: systemd does not answer.
    """
    words = ("--state=active,activating,deactivating", "--plain", "--no-legend", "--full")
    shown = run_tool("systemctl", "list-units", *words, "mcp-bridge-fetch@*.service")
    units = (line.split()[0] for line in shown.splitlines() if line.strip())
    return frozenset(unit.partition("@")[2].removesuffix(".service") for unit in units)


class Fetches:
    """The requests and results below one state directory. Everything blocks (disk, systemctl)."""

    def __init__(self, state_dir: Path, store: Store) -> None:
        self._store = store
        self._requests, self._results, self._known = (
            state_dir / DIRECTORY / name for name in ("requests", "results", "known")
        )

    def request_file(self, ident: str) -> Path:
        return self._requests / f"{ident}.json"

    def take_in(self) -> None:
        """Take the results out of the spool, which starts apply for as long as it holds any."""
        if not self._results.is_dir():
            return
        self._known.mkdir(mode=0o700, exist_ok=True)
        for path in self._results.iterdir():
            path.replace(self._known / path.name)

    def refuse_failed(self, spec: PackageSpec, digest: str) -> None:
        """Refuse a package whose install has failed for this configuration already.

        Raises:
            InstallError: so it has; the message is the installer's.
        """
        result = self._result(spec)
        if result is None or result.digest != digest:
            return
        if result.needs_node:
            if self._store.find(WHEEL) is None:
                try:
                    self.refuse_failed(WHEEL, digest)
                except InstallError as error:
                    raise InstallError(f"it needs node, which cannot be had: {error}") from None
        elif result.why:
            raise InstallError(result.why)

    def forget_failed(self) -> None:
        """Have failed installs tried again."""
        for path in self._known.glob("*.json"):
            path.unlink(missing_ok=True)

    def leave(self, specs: Iterable[PackageSpec]) -> None:
        """Have systemd forget installs that have failed and are for none of these packages.

        Raises:
            SystemctlError: systemd does not answer.
        """
        wanted = {unit(spec) for spec in (*specs, WHEEL)}
        words = ("--state=failed", "--plain", "--no-legend", "--full", "mcp-bridge-fetch@*")
        for line in run_tool("systemctl", "list-units", *words).splitlines():
            failed = line.split()[0]
            if failed not in wanted:
                with suppress(SystemctlError):  # it is not loaded any more
                    systemctl("reset-failed", [failed])

    def start(self, specs: Iterable[PackageSpec], passed: tuple[str, ...], digest: str) -> None:
        """Have the packages installed; what is being installed already is not disturbed.

        Raises:
            SystemctlError: systemd refused.
        """
        wanted = [self._first(spec) for spec in specs]
        for spec in wanted:
            self._request(spec, Request(self._remembered(spec), passed, digest))
        systemctl("start", {unit(spec) for spec in wanted}, "--no-block")

    def upgrade(
        self, spec: PackageSpec, binaries: Iterable[str | None], passed: tuple[str, ...]
    ) -> None:
        """Have the newest version that an open spec allows put into the store, and wait for it.

        Args:
            spec: of the package.
            binaries: the programs that servers need of it, at least one.
            passed: names of variables that the installers get.

        Raises:
            InstallError: it failed; the spec means what it meant before.
        """
        request = Request(spec, passed, UPGRADE, tuple(binaries))
        result = self._ended(spec, request)
        if result.needs_node and self._store.find(WHEEL) is None:
            node = self._ended(WHEEL, Request(WHEEL, passed, UPGRADE))
            if node.why:
                raise InstallError(f"it needs node, which cannot be had: {node.why}")
            result = self._ended(spec, request)
        if result.why:
            raise InstallError(result.why)

    def _ended(self, spec: PackageSpec, request: Request) -> Result:
        """Run the install of a request to its end; how it has ended."""
        for spool in (self._results, self._known):
            (spool / f"{package_id(spec)}.json").unlink(missing_ok=True)
        self._request(spec, request)
        refused = ""
        try:
            systemctl("start", [unit(spec)], timeout=INSTALL_TIMEOUT)
        except SystemctlError as error:
            refused = str(error)
        result = self._result(spec)
        if result is None:
            raise InstallError(
                refused or f"{unit(spec)} has ended without a result; see its journal"
            )
        return result

    def _request(self, spec: PackageSpec, request: Request) -> None:
        self._requests.mkdir(mode=0o700, parents=True, exist_ok=True)
        path, text = self.request_file(package_id(spec)), request.encode()
        if not path.exists() or path.read_bytes() != text:
            replace_file(path, text, _PRIVATE)

    def _remembered(self, spec: PackageSpec) -> PackageSpec:
        """The exact version that an open spec means already: what heals must not be an upgrade."""
        version = None if spec.exact else self._store.resolved(spec)
        return spec if version is None else replace(spec, version=version, exact=True)

    def finish(self, ident: str, result: Result) -> None:
        """Put a result into the spool."""
        self._results.mkdir(mode=0o700, parents=True, exist_ok=True)
        document = {"format": FORMAT, "why": result.why, "needs_node": result.needs_node}
        text = json.dumps({**document, "digest": result.digest}, indent=1) + "\n"
        # Not drafted in the spool itself: whatever lies there counts.
        draft = self._results.parent / f".{ident}.{os.getpid()}.new"
        draft.write_text(text, encoding="utf-8")
        draft.chmod(_PRIVATE)
        draft.replace(self._results / f"{ident}.json")

    def _first(self, spec: PackageSpec) -> PackageSpec:
        """The package itself, or node if that is what its install lacked."""
        result = self._result(spec)
        waits = result is not None and result.needs_node and self._store.find(WHEEL) is None
        return WHEEL if waits else spec

    def _result(self, spec: PackageSpec) -> Result | None:
        # In this order: apply may be moving it from the one to the other.
        for spool in (self._results, self._known):
            try:
                found = json.loads((spool / f"{package_id(spec)}.json").read_text(encoding="utf-8"))
                if found["format"] == FORMAT:
                    why, needs_node = str(found["why"]), bool(found["needs_node"])
                    return Result(why, needs_node, str(found["digest"]))
            except (OSError, ValueError, LookupError, TypeError):
                continue
        return None
