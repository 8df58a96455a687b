"""What an `npx …` or `uvx …` command names: a package, a version, a program of it, its arguments."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import NoReturn

# https://github.com/npm/validate-npm-package-name; no part begins with a dot or a dash.
_NPM_PART = r"[a-z0-9][a-z0-9._~-]*"
_NPM_NAME = re.compile(rf"(?:@{_NPM_PART}/)?{_NPM_PART}")
# PyPA "Names and normalization"; extras stand in brackets behind the name.
_PYPI_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_PYPI_NAME = re.compile(rf"({_PYPI_PART})(?:\[({_PYPI_PART}(?:\s*,\s*{_PYPI_PART})*)\])?")
_NPM_EXACT = re.compile(r"v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)(?:\+[0-9A-Za-z.-]+)?")
_PYPI_EXACT = re.compile(
    r"\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?(?:\+[a-z0-9.]+)?"
)
_NPM_RANGE = re.compile(r"[0-9A-Za-z.*^~<>=| -]+")
_PYPI_RANGE = re.compile(r"(?:[<>=!~]=?=?\s*[0-9A-Za-z.*+]+\s*,?\s*)+")
_BINARY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
MAX_NAME_LENGTH = 214  # npm's own limit; a path component holds 255
_DIGEST = 8  # hexadecimal digits of what a package is installed with, in its directory's name

NPX_ALLOWED = "allowed is npx [-y|--yes] [-p|--package SPEC] SPEC[@VERSION] [ARGUMENT…]"
UVX_ALLOWED = "allowed is uvx [--from SPEC] [--with SPEC]… NAME[@VERSION] [ARGUMENT…]"


class Kind(StrEnum):
    NPM = "npm"
    PYPI = "pypi"


@dataclass(frozen=True, slots=True)
class PackageSpec:
    """A package to be installed, and the program of it to be run.

    Attributes:
        name: npm's name with its scope, or PyPI's normalized name.
        version: an exact version, a range or tag (`^1.2`, `latest`, `>=1,<2`), or None for any.
        exact: whether `version` is one version, so that nothing is left to resolve.
        binary: the program; None for the package's own one.
        extras: PyPI's extras, sorted.
        needs: further packages of PyPI in the same environment, each as pip writes it, sorted: an
            older release of a library, say, where the package's own demands are too wide.
    """

    kind: Kind
    name: str
    version: str | None
    exact: bool
    binary: str | None
    args: tuple[str, ...]
    extras: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def package(self) -> tuple[object, ...]:
        """What is installed, whatever program is run: servers with an equal one share it."""
        return self.kind, self.name, self.version, self.extras, self.needs

    @property
    def label(self) -> str:
        """The package as people write it: `mcp[cli]==2.3.0`, `@scope/name@^1`, `a==1 with b<2`."""
        name = f"{self.name}[{','.join(self.extras)}]" if self.extras else self.name
        if self.version is not None and self.kind is Kind.PYPI:
            name = f"{name}=={self.version}" if self.exact else f"{name}{self.version}"
        elif self.version is not None:
            name = f"{name}@{self.version}"
        return " with ".join((name, *self.needs))

    @property
    def directory_name(self) -> str:
        """The name below the store, without a version; no character that PATH or a shell minds."""
        digest = hashlib.sha256(" ".join(self.needs).encode()).hexdigest()[:_DIGEST]
        needs = (f"with-{digest}",) if self.needs else ()
        return "+".join((self.name, *self.extras, *needs))


def parse_command(command: Sequence[str]) -> PackageSpec | None:
    """Read an argv; None for one that is neither npx nor uvx.

    Raises:
        ValueError: it is one of them in a form that is not understood.
    """
    if not command:
        return None
    match PurePosixPath(command[0]).name:
        case "npx":
            return _parse_npx(list(command[1:]))
        case "uvx":
            return _parse_uvx(list(command[1:]))
        case _:
            return None


def _parse_npx(words: list[str]) -> PackageSpec:
    package: str | None = None
    while words and words[0].startswith("-"):
        flag, equals, value = words.pop(0).partition("=")
        if flag in {"-y", "--yes"} and not equals:
            continue
        if flag == "--" and not equals:
            break
        if flag not in {"-p", "--package"} or package is not None:
            _refuse("npx", flag, NPX_ALLOWED)
        if not equals:
            if not words:
                raise ValueError(f"npx {flag}: the package is missing; {NPX_ALLOWED}")
            value = words.pop(0)
        package = value
    if not words:
        raise ValueError(f"npx: the package is missing; {NPX_ALLOWED}")
    first, *args = words
    name, version = _npm(first if package is None else package)
    exact = _NPM_EXACT.fullmatch(version) if version is not None else None
    return PackageSpec(
        Kind.NPM,
        name,
        exact[1] if exact else version,
        exact is not None,
        None if package is None else _binary(first),
        tuple(args),
    )


def _npm(text: str) -> tuple[str, str | None]:
    at = text.find("@", 1)
    name, version = (text, None) if at < 0 else (text[:at], text[at + 1 :])
    if not _NPM_NAME.fullmatch(name) or len(name) > MAX_NAME_LENGTH:
        raise ValueError(f"npx {text!r}: allowed is NAME or @SCOPE/NAME, with @VERSION or without")
    if version is not None and not _NPM_RANGE.fullmatch(version):
        raise ValueError(f"npx {text!r}: allowed is a version, a range or a tag of the registry")
    return name, version


def _parse_uvx(words: list[str]) -> PackageSpec:
    source: str | None = None
    needs: list[str] = []
    while words and words[0].startswith("-"):
        flag, equals, value = words.pop(0).partition("=")
        if flag not in {"--from", "--with"} or (flag == "--from" and source is not None):
            _refuse("uvx", flag, UVX_ALLOWED)
        if not equals:
            if not words:
                raise ValueError(f"uvx {flag}: the package is missing; {UVX_ALLOWED}")
            value = words.pop(0)
        if flag == "--with":
            needs.append(_need(value))
        else:
            source = value
    if not words:
        raise ValueError(f"uvx: the program is missing; {UVX_ALLOWED}")
    first, *args = words
    name, extras, version, exact = _pypi(first if source is None else source)
    binary = _binary(first) if source is not None else None
    together = tuple(sorted(set(needs)))
    return PackageSpec(Kind.PYPI, name, version, exact, binary, tuple(args), extras, together)


def _need(text: str) -> str:
    name, extras, version, exact = _pypi(text)
    return PackageSpec(Kind.PYPI, name, version, exact, None, (), extras).label


def _pypi(text: str) -> tuple[str, tuple[str, ...], str | None, bool]:
    match = _PYPI_NAME.match(text)
    if match is None or len(text) > MAX_NAME_LENGTH:
        raise ValueError(
            f"uvx {text!r}: allowed is NAME or NAME[EXTRA], with @VERSION or ==VERSION"
        )
    name = re.sub(r"[-_.]+", "-", match[1]).lower()
    extras = tuple(sorted(e.strip().lower() for e in (match[2] or "").split(",") if e.strip()))
    rest = text[match.end() :].strip()
    if not rest or rest == "@latest":
        return name, extras, None, False
    version = rest[1:] if rest.startswith("@") else rest.removeprefix("==").strip()
    if rest.startswith(("@", "==")) and _PYPI_EXACT.fullmatch(version):
        return name, extras, version, True
    if _PYPI_RANGE.fullmatch(rest):
        return name, extras, re.sub(r"\s+", "", rest), False
    raise ValueError(f"uvx {text!r}: allowed behind the name is @VERSION, ==VERSION or a range")


def _binary(text: str) -> str:
    if not _BINARY.fullmatch(text):
        raise ValueError(f"{text!r}: allowed is the name of a program of the package")
    return text


def _refuse(runner: str, flag: str, allowed: str) -> NoReturn:
    raise ValueError(f"{runner} {flag}: not understood here; {allowed}")
