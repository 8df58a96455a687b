"""Show each attempt on the sandbox: what a plain unit gets, and what each profile and mode get.

    python tests/sandbox/report.py [--suite SUITE]...

In containers of tests/lab, and with the suite `vm` in its virtual machine. Exits with 1 when a control fails, an attempt that must be refused is
not, or one that a profile or mode is there for is.
"""

import argparse
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from lab import host, labs, qemu, recipe
from lab.places import Lab
from lab.vm import Vm
from lab.vm_image import image
from lab.vm_recipe import VERSION
from sandbox.faces import FACES, Face
from sandbox.gathering import Report, gather
from sandbox.vm_gathering import gather_in

DONE = "done"
VM = "vm"
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
                where = among(faces, [*report.faces])
                yield _line(promise, name, control, shown, where + mark)


def _line(*cells: str) -> str:
    widths = (*WIDTHS, 0)
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def among(faces: Collection[Face], every: Sequence[Face] = FACES) -> str:
    """The faces in few words: by profile and by mode where that says it.

    Args:
        faces: some of them.
        every: all that were tried.
    """
    if {*faces} == {*every}:
        return "all"
    others = [face for face in every if face not in faces]
    if (shown := _product(faces, every)) is not None:
        return shown
    if (shown := _product(others, every)) is not None:
        return f"all but {shown}"
    return ", ".join(str(face) for face in every if face in faces)


def _product(faces: Collection[Face], every: Sequence[Face]) -> str | None:
    """The same, where they are all modes of some profiles, all profiles of some modes, or so."""
    profiles = list(dict.fromkeys(face.profile for face in every if face in faces))
    modes = list(dict.fromkeys(face.mode for face in every if face in faces))
    if {face for face in every if face.profile in profiles and face.mode in modes} != {*faces}:
        return None
    every_profile = {face.profile for face in every if face.mode in modes} == {*profiles}
    every_mode = {face.mode for face in every if face.profile in profiles} == {*modes}
    # Where few were tried, both may be so of one that is not all.
    shown = [
        "all" if every_profile and not every_mode else ", ".join(profiles),
        "all" if every_mode and not every_profile else ", ".join(modes),
    ]
    return " / ".join(shown)


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
    suites = (*recipe.SUITES, VM)
    parser.add_argument("--suite", action="append", choices=suites, help="repeatable")
    lab = Lab.of_process()
    asked = parser.parse_args().suite or recipe.SUITES
    why = host.unavailable(lab.cache) if {*asked} != {VM} else None
    if why := why or (qemu.unavailable() if VM in asked else None):
        print(f"there can be no lab here: {why}", file=sys.stderr)
        return 1
    failed = 0
    for suite in asked:
        report = gathered(lab, suite)
        print(f"\n{suite}, systemd {recipe.SUITES.get(suite, VERSION)}", *lines(report), sep="\n")
        found = list(wrong(report))
        attempts = sum(map(len, report.plain.values()))
        verdict = f"{len(found)} came out wrong" if found else "every control and refusal is right"
        print(f"{attempts} attempts in {len(report.faces)} profiles and modes: {verdict}")
        failed += len(found)
    return 1 if failed else 0


def gathered(lab: Lab, suite: str) -> Report:
    if suite == VM:
        with Vm(image(lab.cache)) as machine:
            return gather_in(machine)
    container = labs.up(lab, suite, suite)
    try:
        return gather(container)
    finally:
        container.down()


if __name__ == "__main__":
    sys.exit(main())
