"""What a bundle holds: names, and how each is collected."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

from autobot_mcp_bridge import __version__
from autobot_mcp_bridge.config.errors import UnavailableError
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.diagnosis.support.scrub import Scrubber
from autobot_mcp_bridge.units.host.static import FILES

COMMAND_WITHIN = 20.0
JOURNAL_LINES = 2000
# Of a command: servers may fill the journal with lines of 48 KiB, and a bundle has room for 1 MiB.
MOST_TEXT = 2 << 20
MOST_FILES = 500  # of one folder
OURS = ("autobot-mcp-bridge*", "mcp-bridge*")
UNITS = (Path("/etc/systemd/system"), Path("/run/systemd/system"))
ENDED = Path("/run/mcp-bridge/ended")
_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "SYSTEMD_COLORS": "0",
}
# Of systemctl show(1): nothing that holds words of a command or variables.
PROPERTIES = (
    *("Id", "LoadState", "ActiveState", "SubState", "UnitFileState", "Result", "NRestarts"),
    *("ExecMainCode", "ExecMainStatus", "ExecMainStartTimestamp", "ExecMainExitTimestamp"),
    *("MemoryCurrent", "MemoryPeak", "MemoryMax", "TasksCurrent", "TasksMax", "CPUUsageNSec"),
    *("CPUQuotaPerSecUSec", "LimitNOFILE", "IPAddressAllow", "IPAddressDeny", "PrivateNetwork"),
    *("RestrictAddressFamilies", "MemoryDenyWriteExecute", "SystemCallFilter", "NoExecPaths"),
    *("ExecPaths", "ProtectHome", "ProtectSystem", "FragmentPath", "DropInPaths", "ControlGroup"),
)
JOURNALS = {
    "proxy": ("_SYSTEMD_UNIT=mcp-bridge-proxy.service", "+", "SYSLOG_IDENTIFIER=mcp-bridge-proxy"),
    "apply": ("_SYSTEMD_UNIT=mcp-bridge-apply.service",),
    "servers": ("--unit=autobot-mcp-bridge@*",),
    "fetch": ("--unit=mcp-bridge-fetch@*",),
}
KERNEL = (
    *("/proc/version", "/proc/cgroups", "/proc/self/cgroup", "/sys/fs/cgroup/cgroup.controllers"),
    *("/proc/sys/kernel/unprivileged_bpf_disabled", "/proc/sys/user/max_user_namespaces"),
    *("/sys/kernel/security/lsm", "/proc/sys/kernel/seccomp/actions_avail", "/proc/meminfo"),
)
Part = tuple[str, Callable[[], str]]


@dataclass(frozen=True, slots=True)
class Sources:
    """What is asked where.

    Attributes:
        commands: name to the words of one of our own subcommands, which print JSON.
        asked: name to a question to the running proxy.
    """

    places: Places
    scrubber: Scrubber
    commands: Mapping[str, Sequence[str]]
    asked: Mapping[str, Callable[[], str]]

    def parts(self) -> Iterator[Part]:
        """Every part; a folder is looked into when it is its turn."""
        scrub, places = self.scrubber, self.places
        yield "versions.txt", versions
        for name, words in self.commands.items():
            yield f"{name}.json", partial(self._document_of, words)
        for name, question in self.asked.items():
            yield name, partial(lambda ask: scrub.text(ask()), question)
        for path in (places.servers_json, *_listed(places.servers_d, "*.json")):
            yield f"config/{path.name}", partial(self._file, path, scrub.document)
        yield "config/host.toml", partial(self._file, places.host_toml, scrub.text)
        yield "state/accepted.json", partial(self._file, places.accepted, scrub.document)
        yield "state/refused.txt", partial(self._file, places.refused, scrub.text)
        resolved = places.packages / "resolved.json"
        yield "state/resolved.json", partial(self._file, resolved, scrub.document)
        for path in _unit_files():
            yield f"units{path}", partial(self._file, path, scrub.unit)
        yield (
            "systemctl/list.txt",
            partial(self._command, "systemctl", "list-units", "--all", *OURS),
        )
        yield "systemctl/files.txt", partial(self._command, "systemctl", "list-unit-files", *OURS)
        show = ("systemctl", "show", f"--property={','.join(PROPERTIES)}", "--", *OURS)
        yield "systemctl/show.txt", partial(self._command, *show)
        for name, matches in JOURNALS.items():
            words = ("journalctl", "--no-pager", "--output=short-iso", f"--lines={JOURNAL_LINES}")
            yield f"journal/{name}.txt", partial(self._command, *words, *matches)
        for path in _listed(ENDED, "*.json"):
            yield f"ended/{path.name}", partial(self._file, path, scrub.document)
        yield "disk.txt", self._disk
        yield "kernel.txt", kernel

    def _file(self, path: Path, scrub: Callable[[str], str]) -> str:
        return scrub(path.read_text(encoding="utf-8", errors="replace"))

    def _command(self, *words: str) -> str:
        return self.scrubber.text(output(words, most=MOST_TEXT))

    def _document_of(self, words: Sequence[str]) -> str:
        return self.scrubber.document(output(words, strict=False))

    def _disk(self) -> str:
        shown = [output(("df", "-h", str(self.places.state_dir)), strict=False)]
        roots = (
            self.places.state_dir,
            Path("/var/lib/private/mcp-bridge"),
            Path("/var/cache/mcp-bridge"),
        )
        there = [str(path) for path in roots if path.exists()]
        shown.append(output(("du", "--max-depth=4", "-h", "-x", "--", *there), strict=False))
        return self.scrubber.text("\n".join(shown))


def output(words: Sequence[str], *, strict: bool = True, most: int | None = None) -> str:
    """What a command prints; of more than `most` bytes the last whole lines.

    Raises:
        UnavailableError: it is not there, failed (if `strict`), or took too long.
    """
    with tempfile.TemporaryFile() as out:
        try:
            subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **_ENVIRONMENT},
                timeout=COMMAND_WITHIN,
                check=strict,
            )
        except FileNotFoundError:
            raise UnavailableError(f"{words[0]} is not there") from None
        except subprocess.TimeoutExpired:
            raise UnavailableError(f"{words[0]} did not end within {COMMAND_WITHIN:g} s") from None
        except subprocess.CalledProcessError as error:
            raise UnavailableError(f"{words[0]} ended with status {error.returncode}") from None
        cut = max(0, out.seek(0, os.SEEK_END) - most) if most is not None else 0
        out.seek(cut)
        text = out.read()
    if cut:
        text = text.partition(b"\n")[2]  # half a line may have half a secret in it
    return text.decode("utf-8", "replace")


def versions() -> str:
    """Of everything that takes part."""
    lines = [f"mcp-bridge {__version__}"]
    lines += [
        f"  {name} {_version_of(name)}" for name in ("aiohttp", "pydantic", "dbus-next", "orjson")
    ]
    try:
        lines += [Path("/etc/os-release").read_text(encoding="utf-8")]
    except OSError:
        lines.append("no /etc/os-release")
    programs = ("systemctl", "python3", "node", "npx", "uv", "uvx")
    for words in (("uname", "-a"), *((name, "--version") for name in programs)):
        if shutil.which(words[0], path=_ENVIRONMENT["PATH"]) is None:
            lines.append(f"{words[0]}: not there")
            continue
        lines.append(f"{' '.join(words)}: {output(words, strict=False).strip()}")
    return "\n".join(lines)


def kernel() -> str:
    """What decides which limits and filters this host enforces."""
    lines = [f"bpf type information: {Path('/sys/kernel/btf/vmlinux').exists()}"]
    for name in KERNEL:
        try:
            lines += [
                f"== {name}",
                Path(name).read_text(encoding="utf-8", errors="replace").strip(),
            ]
        except OSError as error:
            lines.append(f"cannot be read: {error.strerror}")
    return "\n".join(lines)


def _version_of(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _unit_files() -> Iterator[Path]:
    names = [Path("/") / place for place in FILES.values() if "/systemd/system/" in place]
    yield from (path for path in names if path.exists())
    for root in UNITS:
        for pattern in OURS:
            yield from _listed(root, f"{pattern}.d/*.conf")


def _listed(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern))[:MOST_FILES]
