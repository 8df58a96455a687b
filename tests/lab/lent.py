"""The host's package settings, for containers on the host's network that install something.

Which files and directories they name is read from them, as in ../bare/enter.sh: a registry may
be reachable only by the host's mirrors, wheel directories and certificates.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

ASK_TIMEOUT = 60.0  # seconds for a package tool to tell its settings
_PLACES = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs", "/usr/local/share/ca-certificates")
_SETTINGS = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf", "/etc/npmrc", "/usr/etc/npmrc")
_OF_USER = (".config/pip/pip.conf", ".pip/pip.conf", ".npmrc")
_VARIABLE = re.compile(
    r"(PIP|UV|NPM_CONFIG|SSL)_.*|.*_CA_(BUNDLE|CERTS)|(HTTPS?|NO)_PROXY", re.IGNORECASE
)
_NAMED = re.compile(r"(?:file://|[ =])(/[A-Za-z0-9._/-]+)")
# What lies there belongs to the container, or is lent above. The directories themselves count:
# a setting such as npm's nodedir=/usr would put the host's programs in place of the container's.
_NOT_LENT = ("/usr", "/etc/ssl", "/dev", "/proc", "/sys", "/run", "/tmp", "/root")


def variables() -> dict[str, str]:
    """Return the variables that tell package tools how to reach their registries."""
    return {name: value for name, value in os.environ.items() if _VARIABLE.fullmatch(name)}


def registries() -> dict[str, str]:
    """Return the same, and the addresses of the registries that this machine's files name."""
    found = variables()
    for variable, words in (
        ("NPM_CONFIG_REGISTRY", ["npm", "config", "get", "registry"]),
        ("PIP_INDEX_URL", ["python3", "-m", "pip", "config", "get", "global.index-url"]),
    ):
        if shutil.which(words[0]):
            done = subprocess.run(
                words, capture_output=True, text=True, timeout=ASK_TIMEOUT, check=False
            )
            if done.returncode == 0 and done.stdout.startswith("http"):
                found.setdefault(variable, done.stdout.strip())
    return found


def paths() -> list[tuple[Path, Path]]:
    """Return the files and directories to lend: where they are here, and where inside."""
    home = Path.home()
    own = [(Path(path), Path(path)) for path in (*_PLACES, *_SETTINGS)]
    own += [(home / path, Path("/root") / path) for path in _OF_USER]
    lent = {inside: here for here, inside in own if here.exists()}
    for path in sorted(_named(lent[path] for path in lent if str(path) not in _PLACES)):
        # What is in a directory that is lent already comes with it.
        if path.exists() and not any(path.is_relative_to(other) for other in lent):
            lent[path] = path
    return [(here, inside) for inside, here in lent.items()]


def _named(files: Iterable[Path]) -> Iterator[Path]:
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in files]
    texts += [f"{name}={value}" for name, value in variables().items()]
    kept = (*_NOT_LENT, Path.home())
    for text in texts:
        for found in _NAMED.findall(text):
            # The files of a package index may lie beside its list.
            path = Path(found.rstrip("/").removesuffix("/simple") or "/")
            # Nor one that holds the system, such as / or /etc.
            if len(path.parts) > 2 and not any(path.is_relative_to(other) for other in kept):
                yield path
