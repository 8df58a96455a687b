"""Chromium in the profile browser, with its own sandbox on."""

import pytest

from lab import labs, recipe
from support import installed as units
from support.chromium import PROGRAM, chromium_layer
from support.installed import instance, spec_of

pytestmark = [pytest.mark.lab, pytest.mark.network]

PAGE = '<p id="p"></p><script>document.getElementById("p").textContent = 6 * 7</script>'
LIMITS = {"memory": "1G", "tasks": 512}
WITHIN = 60.0  # seconds for a browser's start on a busy machine
START = f'{PROGRAM} --headless --disable-gpu --user-data-dir="$HOME/profile"'
DUMP = f"{START} --dump-dom file:///srv/page.html 2>&1"
# The renderer (and not this text in a command line) of a page that stays open: how deep its PID namespace lies, and its system call filters.
LOOK = f"""
{START} --allow-pre-commit-input file:///srv/page.html >/dev/null 2>&1 &
until found=$(grep -al "type=rendere[r]" /proc/[0-9]*/cmdline 2>/dev/null); do sleep 0.1; done
status=${{found%%/cmdline*}}/status
for each in $status /proc/self/status; do grep -E '^(NSpid|Seccomp_filters)' $each | tr '\\n' ' '; echo; done
kill %1
"""


@pytest.fixture(scope="module", params=recipe.SUITES)
def browsers(request, lab):
    layers = [chromium_layer(lab, request.param)]
    container = labs.up(lab, f"web-{request.param}", request.param, layers=layers)
    units.install(container)
    container.write("/srv/page.html", PAGE)
    yield container
    container.down()


def said(container, profile, mode, script):
    words = ("/bin/sh", "-c", script.strip().replace("\n", "; ").replace("&;", "&"))
    keys = {"profile": profile, "limits": LIMITS, "paths": {"read": ["/srv"]}}
    spec = spec_of("web", *words, network={"mode": mode}, **keys)
    with instance(container, spec) as one, one.start() as handed:
        assert handed.rest() == b""
        return handed.read(within=WITHIN).decode()


@pytest.mark.parametrize("mode", ["none", "loopback", "internet"])
def test_chromium_renders_a_page_with_its_script(browsers, mode):
    assert '<p id="p">42</p>' in said(browsers, "browser", mode, DUMP)


def test_in_another_profile_chromium_finds_no_sandbox_of_its_own_and_ends(browsers):
    extra = "RestrictAddressFamilies=AF_UNIX\nProcSubset=all\n"
    assert "No usable sandbox" in _plainly(browsers, extra)


def test_a_renderer_has_a_pid_namespace_and_filters_of_its_own(browsers):
    renderer, shell = said(browsers, "browser", "none", LOOK).splitlines()
    depth, filters = _numbers(renderer)
    own_depth, own_filters = _numbers(shell)

    assert depth > own_depth
    assert filters > own_filters


def _plainly(container, extra):
    words = ("/bin/sh", "-c", DUMP)
    spec = spec_of("web", *words, profile="node", limits=LIMITS, paths={"read": ["/srv"]})
    with instance(container, spec, f"[Service]\n{extra}") as one, one.start() as handed:
        assert handed.rest() == b""
        return handed.read(within=WITHIN).decode()


def _numbers(line):
    """Of `NSpid: 87 5 Seccomp_filters: 38`: the depth, and the filters."""
    pids, _, filters = line.removeprefix("NSpid:").partition("Seccomp_filters:")
    return len(pids.split()), int(filters)
