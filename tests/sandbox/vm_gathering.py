"""The attempts in a virtual machine, in a few faces of the sandbox: it takes long there.

What belongs to a whole kernel is tried besides.
"""

from lab.vm import Vm
from sandbox.faces import Face
from sandbox.gathering import Report, trying
from sandbox.vm_targets import answering_in
from support.vms import Inside

FACES = [
    Face("python", "none"),
    Face("python", "list"),
    Face("python", "internet"),
    Face("strict", "loopback"),
]
# With less a unit's own set-up, emulated, would take longer than it may.
SHARE = "25%"
MODULE = "/opt/dummy.ko"
# The kernel's modules are compressed; this one is used by nothing.
UNPACK = f"""
import glob, lzma
(packed,) = glob.glob("/usr/lib/modules/*/kernel/drivers/net/dummy.ko.xz")
open("{MODULE}", "wb").write(lzma.open(packed).read())
"""


def gather_in(vm: Vm) -> Report:
    """Try everything; it takes some minutes."""
    vm.check("python3", "-c", UNPACK)
    with answering_in(vm) as targets:
        return trying(vm, targets, FACES, Inside, SHARE, module=MODULE)
