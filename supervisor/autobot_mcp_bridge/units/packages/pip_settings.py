"""The caller's pip settings, told to uv, which does not read them (standard library only).

A person whose pip reaches a mirror or a private CA expects the same of an install made here.
The set-up of a checkout uses this file too, before anything is installed.
"""

import configparser
import os
from collections.abc import Mapping
from pathlib import Path

# pip's sections, the later one overriding (pip: Configuration, "Precedence").
SECTIONS = ("global", "install")
DEFAULT_TIMEOUT = "120"  # seconds without a byte; uv's own 30 are short for a busy mirror


def uv_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with uv's variables filled in from pip's; those that are set stay."""
    pip = pip_settings(environ)
    found = {
        "UV_DEFAULT_INDEX": pip.get("index-url", ""),
        "UV_INDEX": " ".join(pip.get("extra-index-url", "").split()),
        "UV_FIND_LINKS": ",".join(pip.get("find-links", "").split()),
        "UV_CONSTRAINT": " ".join(pip.get("constraint", "").split()),
        "UV_HTTP_TIMEOUT": pip.get("default-timeout") or pip.get("timeout") or DEFAULT_TIMEOUT,
        "SSL_CERT_FILE": pip.get("cert", ""),
        "UV_NO_PROGRESS": "1",
        "UV_PYTHON_DOWNLOADS": "never",
    }
    if found["UV_INDEX"]:
        found["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # as pip: all indexes count alike
    return {**{name: value for name, value in found.items() if value}, **environ}


def pip_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """What pip would read from its files and from PIP_*; the last one wins."""
    settings: dict[str, str] = {}
    for file in _files(environ):
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue  # pip itself would complain; an install that needs it says so
        for section in SECTIONS:
            if parser.has_section(section):
                settings.update(parser.items(section))
    for name, value in environ.items():
        if name.startswith("PIP_") and value:
            settings[name.removeprefix("PIP_").lower().replace("_", "-")] = value
    return settings


def _files(environ: Mapping[str, str]) -> list[Path]:
    own = environ.get("PIP_CONFIG_FILE", "")
    if own == os.devnull:
        return []
    home = Path(environ.get("HOME") or "/")
    xdg = environ.get("XDG_CONFIG_HOME", "")
    config = Path(xdg) if xdg.startswith("/") else home / ".config"
    shared = [Path(part, "pip/pip.conf") for part in _shared(environ)]
    files = [*shared, Path("/etc/pip.conf"), home / ".pip/pip.conf", config / "pip/pip.conf"]
    return [*files, Path(own)] if own else files


def _shared(environ: Mapping[str, str]) -> list[str]:
    return [part for part in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":") if part]
