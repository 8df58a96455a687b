"""Show each attempt on the sandbox: what a plain unit gets, and what each profile and mode get.

    python tests/sandbox/report.py [--suite SUITE]...

In containers of tests/lab. Exits with 1 when a control fails, an attempt that must be refused is
not, or one that a profile or mode is there for is.
"""

import argparse
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from lab import host, labs, recipe
from lab.places import Lab
from sandbox.faces import FACES, Face
from sandbox.gathering import Report, gather

DONE = "done"
WIDTHS = (10, 40, 12, 13)


def lines(report: Report) -> Iterator[str]:
    """The table, without the last cell's blanks."""
    yield _line("promise", "attempt", "plain unit", "sandbox", "profiles / network modes")
    for promise, attempts in report.plain.items():
        for name, control in attempts.items():
            results: dict[tuple[str, bool], set[Face]] = {}
            for face, found in report.faces.items():
                key = (found[promise][name], report.given(name, face))
                results.setdefault(key, set()).add(face)
            for (result, given), faces in results.items():
                right = (result == DONE) == given
                mark = "" if right else "  WRONG"
                shown = ("given" if given else "OPEN") if result == DONE else result
                yield _line(promise, name, control, shown, among(faces) + mark)


def _line(*cells: str) -> str:
    widths = (*WIDTHS, 0)
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def among(faces: Collection[Face]) -> str:
    """The faces in few words: by profile and by mode where that says it."""
    others = [face for face in FACES if face not in faces]
    if (shown := _product(faces)) is not None:
        return shown
    if (shown := _product(others)) is not None:
        return f"all but {shown}"
    return ", ".join(str(face) for face in FACES if face in faces)


def _product(faces: Collection[Face]) -> str | None:
    """The same, where they are all modes of some profiles, all profiles of some modes, or so."""
    profiles = list(dict.fromkeys(face.profile for face in FACES if face in faces))
    modes = list(dict.fromkeys(face.mode for face in FACES if face in faces))
    if {face for face in FACES if face.profile in profiles and face.mode in modes} != {*faces}:
        return None
    every_profile = {face.profile for face in FACES if face.mode in modes} == {*profiles}
    every_mode = {face.mode for face in FACES if face.profile in profiles} == {*modes}
    shown = [
        "all" if every_profile else ", ".join(profiles),
        "all" if every_mode else ", ".join(modes),
    ]
    return "all" if every_profile and every_mode else " / ".join(shown)


def wrong(report: Report) -> Iterator[str]:
    """Each attempt that did not come out as it must, with where."""
    for promise, attempts in report.plain.items():
        for name, control in attempts.items():
            if control != DONE:
                yield f"{name}: {control} in a plain unit, so that nothing is shown"
            for face, found in report.faces.items():
                result = found[promise][name]
                if (result == DONE) != report.given(name, face):
                    yield f"{name}: {result} in {face}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", action="append", choices=recipe.SUITES, help="repeatable")
    lab = Lab.of_process()
    suites = parser.parse_args().suite or recipe.SUITES
    if (why := host.unavailable(lab.cache)) is not None:
        print(f"there can be no lab here: {why}", file=sys.stderr)
        return 1
    failed = 0
    for suite in suites:
        container = labs.up(lab, suite, suite)
        try:
            report = gather(container)
        finally:
            container.down()
        print(f"\n{suite}, systemd {recipe.SUITES[suite]}", *lines(report), sep="\n")
        found = list(wrong(report))
        attempts = sum(map(len, report.plain.values()))
        verdict = f"{len(found)} came out wrong" if found else "every control and refusal is right"
        print(f"{attempts} attempts in {len(report.faces)} profiles and modes: {verdict}")
        failed += len(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
