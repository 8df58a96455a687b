"""`make sandbox-image`: the same packages give the same bytes, and nothing of a machine is in it."""

import subprocess

import pytest

from support.images import BUILD_WITHIN, TOOL, build, sandbox_image
from support.waiting import PATIENCE

pytestmark = pytest.mark.lab

# Of every image; what a machine or a build would have left besides.
THERE = ("usr/bin/python3", "usr/bin/jq", "usr/bin/rg", "usr/bin/git", "usr/bin/curl", "bin/bash")
GONE = ("etc/machine-id", "etc/hostname", "etc/apt", "etc/shadow", "var/lib/apt", "var/log/*")


def listed(image, *paths):
    """The lines of unsquashfs(1) for the paths that are there."""
    words = ["unsquashfs", "-lln", "-d", "", str(image), *paths]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=BUILD_WITHIN * PATIENCE, check=False
    )
    return [line for line in done.stdout.splitlines() if line.startswith(("-", "l", "d"))]


def test_the_same_packages_give_the_same_bytes(lab, need, tmp_path, record_property):
    need("mksquashfs")
    first = sandbox_image(lab)
    again = tmp_path / "image.squashfs"
    done = build(again)

    assert done.returncode == 0, done.stderr
    listing = again.with_suffix(".packages").read_text("utf-8")
    if first.with_suffix(".packages").read_text("utf-8") != listing:
        # The mirror has newer packages than when the first was made: these are compared.
        first = tmp_path / "first.squashfs"
        again.rename(first)
        assert build(again).returncode == 0
    assert again.read_bytes() == first.read_bytes()
    assert {"python3", "jq", "ripgrep"} <= {line.split()[0] for line in listing.splitlines()}
    assert done.stdout.splitlines()[-1].startswith(str(again))
    record_property("megabytes", round(again.stat().st_size / 1e6, 1))


def test_the_tools_are_there_and_nothing_of_a_machine_is(lab, need):
    need("unsquashfs")
    found = listed(sandbox_image(lab))
    names = [words[5].lstrip("/") for line in found if len(words := line.split()) > 5]

    assert {name.replace("bin/bash", "usr/bin/bash") for name in THERE} <= {*names}
    assert [path for path in GONE if path.rstrip("*") in names or path in names] == []
    assert not any(name.startswith(("var/log/", "var/cache/", "run/", "tmp/")) for name in names)
    # Nobody in there can become somebody else.
    assert [line for line in found if line.startswith("-") and "s" in line.split()[0]] == []
    assert {line.split()[1] for line in found} == {"0/0"}


@pytest.mark.parametrize(
    ("text", "word"), [("jq\nBad Name\n", ":2: 'Bad Name'"), ("jq # a comment\n", "python3")]
)
def test_a_list_that_gives_no_image_is_refused(need, tmp_path, text, word):
    need("root")
    packages = tmp_path / "packages"
    packages.write_text(text, encoding="utf-8")

    done = build(tmp_path / "image", "--packages", str(packages))

    assert done.returncode == 1
    assert word in done.stderr
    assert not (tmp_path / "image").exists()


def test_what_has_to_be_installed_first_is_told():
    done = subprocess.run(
        ["/usr/bin/python3", TOOL, "--output", "/nowhere/image"],
        env={"PATH": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=30 * PATIENCE,
        check=False,
    )

    assert done.returncode == 1
    assert "apt-get install mmdebstrap squashfs-tools" in done.stderr
