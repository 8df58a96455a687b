"""What a server cannot do, by trying, in each profile and network mode, beside a unit that can."""

import json

import pytest

from sandbox import report
from sandbox.faces import FACES, Face
from sandbox.gathering import WORDS, gather
from support.installed import instance, spec_of

pytestmark = pytest.mark.lab

PROMISES = (
    "files",
    "processes",
    "kernel",
    "execution",
    "sockets",
    "network",
    "limits",
    "processor",
)


@pytest.fixture(scope="module")
def found(container):
    return gather(container)


@pytest.mark.parametrize("promise", PROMISES)
def test_a_plain_unit_can(found, promise, record_property):
    results = found.plain[promise]
    record_property(promise, len(results))

    assert results == dict.fromkeys(results, "done") != {}


@pytest.mark.parametrize("face", FACES, ids=str)
@pytest.mark.parametrize("promise", PROMISES)
def test_a_server_can_only_what_its_profile_and_network_mode_are_for(found, promise, face):
    results = found.faces[face][promise]
    assert results.keys() == found.plain[promise].keys()

    done = {name for name, result in results.items() if result == "done"}
    assert done == {name for name in results if found.given(name, face)}


def test_every_promise_is_asked_for_and_nothing_is_wrong(found, record_property):
    attempts = sum(map(len, found.plain.values()))
    record_property("attempts", attempts * len(found.faces))
    record_property("wrong", len(list(report.wrong(found))))
    print(*report.lines(found), sep="\n")

    assert [*found.plain] == [*PROMISES]
    assert list(report.wrong(found)) == []


def test_with_io_uring_a_server_would_make_sockets_that_no_filter_sees(container, found):
    allowed = "[Service]\nSystemCallFilter=io_uring_setup io_uring_enter io_uring_register\n"
    words = (*WORDS, "sockets")
    with instance(container, spec_of("ring", *words), allowed) as one, one.start() as handed:
        assert handed.rest() == b""
        results = json.loads(handed.read(within=20.0))["sockets"]

    assert results["make a socket by io_uring"] == "done" != results["make an AF_UNIX socket"]


def test_the_table_tells_profiles_and_modes_in_few_words():
    modes = [face for face in FACES if face.mode == "none"]
    node = [face for face in FACES if face.profile == "node"]

    assert report.among(FACES) == "all"
    assert report.among(modes) == "all / none"
    assert report.among(node) == "node / all"
    assert report.among([face for face in FACES if face not in node]).startswith("strict, python")
    assert report.among([face for face in FACES if face not in node[:2]]) == (
        "all but node / none, loopback"
    )
    few = [Face("python", "none"), Face("strict", "loopback")]
    assert report.among(few[:1], few) == "python / none"
    assert report.among([*node, *modes]).count(", ") == len({*node, *modes}) - 1
