"""What a server cannot do on a machine with a kernel of its own, by trying, beside a unit that can.

The profiles and modes are few, as it takes long there: containers show all of them.
"""

import pytest

from sandbox import report
from sandbox.vm_gathering import FACES, gather_in

pytestmark = pytest.mark.vm


@pytest.fixture(scope="module")
def found(vm):
    return gather_in(vm)


def test_a_plain_unit_can_do_all_of_it(found):
    failed = {
        f"{promise}: {name}": result
        for promise, results in found.plain.items()
        for name, result in results.items()
        if result != "done"
    }
    assert failed == {}


def test_a_server_can_only_what_its_profile_and_network_mode_are_for(found, record_property):
    attempts = sum(map(len, found.plain.values()))
    record_property("attempts", attempts * len(found.faces))
    record_property("wrong", len(list(report.wrong(found))))
    print(*report.lines(found), sep="\n")

    assert [*found.faces] == FACES
    assert list(report.wrong(found)) == []


@pytest.mark.parametrize("face", FACES, ids=str)
def test_the_machine_itself_is_out_of_a_server_s_reach(found, face):
    results = found.faces[face]["machine"]

    assert found.plain["machine"] == dict.fromkeys(results, "done") != {}
    assert {*results.values()} <= {"EPERM", "EACCES", "EROFS", "ENOENT"}, results
