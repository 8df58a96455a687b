"""One virtual machine for all tests of a session, with the project's units and its program in it.

The kernel in there is another one, so that a server's pipes cannot come out: `Inside` takes them
there. Its loopback comes out by ssh.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.supervision.ended import LastWords, parse
from lab import labs
from lab.places import Lab, default_cache
from lab.vm import Vm
from lab.vm_image import disk_of, image
from lab.vm_recipe import SUITE
from rules.tree import ROOT
from support import installed as units
from support.installed import SERVERS, Instance
from support.missing import Needs
from support.product import Product, lay_code, program_layer
from support.waiting import until

PROGRAM = "usr/lib/mcp-bridge"
TAKING = Path(__file__).with_name("taking.py").read_text(encoding="utf-8")
# systemd starts Python, emulated; then it may be busy for a while.
WITHIN = 30.0


@pytest.fixture(scope="session")
def vm(need: Needs, lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vm]:
    need("vm")
    disk = tmp_path_factory.mktemp("vm") / "program.img"
    _program(lab, disk)
    with Vm(image(default_cache()), [disk]) as made:
        made.check("mount", "/dev/vdb", f"/{PROGRAM}")
        units.install(made)
        yield made


def _program(lab: Lab, disk: Path) -> None:
    """Make a disk with the program's venv, and the checkout's code in it."""
    container = labs.up(lab, "vm-program", SUITE, layers=[program_layer(lab, SUITE)])
    try:
        lay_code(container)
        state = container.state()
        assert state is not None, f"{container} is not up"
        disk_of(Path(f"/proc/{state.leader}/root/{PROGRAM}"), disk, "512M")
    finally:
        container.down()


class Inside(Instance):
    """One server's units, in a virtual machine."""

    def told(self, *, within: float = WITHIN) -> str:
        return self.taken(within=within)["said"]

    def taken(self, *, within: float = WITHIN) -> dict[str, str]:
        """The same, with its invocation's id."""
        text = self.container.check(*self._taking, timeout=within)
        found: dict[str, str] = json.loads(text)
        assert found["rest"] == ""
        return found

    @contextmanager
    def held(self) -> Iterator[None]:
        unit = f"test-holds-{self.name}"
        self.container.check("systemd-run", "--quiet", f"--unit={unit}", *self._taking)
        try:
            assert until(self._runs, within=WITHIN), f"{self.name} does not run"
            yield
        finally:
            self.container.check("systemctl", "stop", unit)

    @property
    def _taking(self) -> tuple[str, ...]:
        return ("python3", "-I", "-c", TAKING, f"/run/mcp-bridge/{self.name}.sock")

    def _runs(self) -> bool:
        # Since Type=exec: the launcher has become the server.
        return self.container.run("systemctl", "is-active", self.service).out == "active\n"

    def last_words(self, invocation: str) -> LastWords:
        """The record of its end, read by the product's code."""
        path = f"/run/mcp-bridge/ended/{invocation}.json"

        def there() -> LastWords | None:
            text = self.container.run("cat", path).out
            # It is written twice when the journal takes its time.
            if not text or json.loads(text)["stderr"] is None:
                return None
            return parse(text.encode(), self.name, invocation)

        found = until(there, within=WITHIN)
        assert found, f"no record of {invocation}"
        return found


@contextmanager
def inside(vm: Vm, spec: ServerSpec, extra: str = "") -> Iterator[Inside]:
    with units.instance(vm, spec, extra, kind=Inside) as one:
        yield one


class _Forwarded(socket.socket):
    """Connects to the machine's loopback, whatever address it is given."""

    vm: Vm

    def connect(self, address: Any) -> None:
        super().connect(str(self.vm.forward(address[1])))


class ProductInVm(Product):
    """The product in a virtual machine."""

    def __init__(self, vm: Vm) -> None:
        super().__init__(vm)
        self.vm = vm

    def dial(self, kind: int = socket.SOCK_STREAM) -> socket.socket:
        made = _Forwarded(socket.AF_UNIX, kind)
        made.vm = self.vm
        made.setblocking(False)
        return made


@pytest.fixture(scope="session")
def product_in_vm(vm: Vm) -> ProductInVm:
    made = ProductInVm(vm)
    vm.copy(ROOT / "tests" / "servers", SERVERS)
    made.install()
    return made


@pytest.fixture
def swap(vm: Vm) -> Iterator[None]:
    """The machine has swap."""
    vm.check(
        "sh", "-c", "fallocate -l 256M /swap && chmod 600 /swap && mkswap /swap && swapon /swap"
    )
    yield
    vm.check("sh", "-c", "swapoff /swap && rm /swap", timeout=60.0)
