"""Where the proxy's socket units listen, by host.toml."""

import socket
from contextlib import contextmanager

import pytest

from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.units import addresses
from autobot_mcp_bridge.units.addresses import Addresses

CLIENTS = "mcp-bridge-proxy.socket"
OPERATORS = "mcp-bridge-operator.socket"


@pytest.fixture(autouse=True)
def own_network(monkeypatch):
    """The test's own sockets in the place of the host's."""
    tables = [path.__class__(str(path).replace("/1/", "/self/")) for path in addresses._TABLES]
    monkeypatch.setattr(addresses, "_TABLES", tables)


@contextmanager
def listening(address, family=socket.AF_INET):
    with socket.socket(family) as other:
        other.bind((address, 0))
        other.listen()
        yield other.getsockname()[1]


def settings(address="127.0.0.1", port=8765, *, table="listen"):
    keys = {table: {"address": address, "port": port}}
    keys.setdefault("listen", {})["beyond_loopback"] = True
    return HostSettings.model_validate(keys)


def planned(tmp_path, host, now=None):
    return Addresses(tmp_path, print).plan(host, now or HostSettings())


def test_the_defaults_need_no_drop_in(tmp_path):
    assert planned(tmp_path, HostSettings()) == {CLIENTS: "", OPERATORS: ""}
    assert planned(tmp_path, settings("localhost"))[CLIENTS] == ""


@pytest.mark.parametrize(
    ("address", "shown", "beyond"),
    [("127.0.0.1", "127.0.0.1", False), ("::1", "[::1]", False), ("192.0.2.7", "192.0.2.7", True)],
)
def test_another_address_takes_the_place_of_the_units_own(tmp_path, address, shown, beyond):
    text = planned(tmp_path, settings(address, 4))[CLIENTS]

    wanted = ["[Socket]", "ListenStream=", f"ListenStream={shown}:4"]
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines == wanted + ["FreeBind=yes"] * beyond


@pytest.mark.parametrize(
    ("theirs", "ours"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("127.0.0.1", "::")]
)
def test_a_port_on_which_another_program_listens_is_refused_with_its_place(tmp_path, theirs, ours):
    with listening(theirs) as port:
        with pytest.raises(DataError, match=rf"host\.toml: operator\.port: {port}: another"):
            planned(tmp_path, settings(ours, port, table="operator"))
        # Our own unit's may be listened on at another address.
        now = settings(theirs, port, table="operator")
        assert planned(tmp_path, now, now)[OPERATORS]
    assert planned(tmp_path, settings(ours, port, table="operator"))[OPERATORS]


def test_a_listener_of_ipv6_is_seen_as_well(tmp_path):
    with listening("::1", socket.AF_INET6) as port, pytest.raises(DataError):
        planned(tmp_path, settings("::1", port))
    with listening("::1", socket.AF_INET6) as port:
        assert planned(tmp_path, settings("127.0.0.2", port))[CLIENTS]
