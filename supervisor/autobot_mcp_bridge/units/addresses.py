"""Where the proxy listens, by host.toml: its ports are systemd's, so they are drop-ins of sockets."""

import ipaddress
import socket
import sys
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.config.files import replace_file
from autobot_mcp_bridge.model.host import HostSettings, Listen, Operator
from autobot_mcp_bridge.units.host import static
from autobot_mcp_bridge.units.instances import DROP_IN
from autobot_mcp_bridge.units.render import listen_drop_in
from autobot_mcp_bridge.units.systemctl import SystemctlError, daemon_reload, systemctl

# The host's own sockets, even for apply, whose unit has a network of its own.
_TABLES = (Path("/proc/1/net/tcp"), Path("/proc/1/net/tcp6"))
_LISTEN = "0A"  # TCP_LISTEN, proc_pid_net(5)

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Addresses:
    """The drop-ins of one host.

    Attributes:
        units: the directory of /etc for units.
        say: gets a line for people at each step.
    """

    units: Path
    say: Callable[[str], None]

    def existing(self) -> dict[str, str]:
        """Socket unit to the text of its drop-in; "" where it has none."""
        return {unit: _text(self._file(unit)) for unit in static.PORTS}

    def plan(self, host: HostSettings, now: HostSettings) -> dict[str, str]:
        """Socket unit to the drop-in that the settings need; "" where the unit file says the same.

        Args:
            host: the settings that are wanted.
            now: those in force.

        Raises:
            DataError: another program listens there already.
        """
        ours = {(_address(where), where.port) for _, where in _listeners(now)}
        found, there = {}, self.existing()
        for unit, where in _listeners(host):
            address, default = _address(where), type(where)()
            same = (address, where.port) == (_address(default), default.port)
            text = "" if same else listen_drop_in(_shown(where), loopback=address.is_loopback)
            # By its drop-in it is ours, too, should accepted.json be lost.
            known = (address, where.port) in ours or text == there[unit]
            if not known and _is_taken(address, where.port, ours):
                place = f"host.toml: {static.PORTS[unit]}.port: {where.port}"
                raise DataError(f"{place}: another program listens on {_shown(where)} already")
            found[unit] = text
        return found

    def differing(self, wanted: Mapping[str, str]) -> list[str]:
        """The socket units whose drop-ins are not these."""
        before = self.existing()
        return [unit for unit, text in wanted.items() if text != before[unit]]

    def change(self, changed: Mapping[str, str]) -> bool:
        """Put drop-ins in force; whether there are any, and the proxy was restarted.

        A socket's restart is the proxy's own, too: it ends neither servers nor sessions.

        Raises:
            SystemctlError: an address cannot be listened on; the one before is in force again.
        """
        before = self.existing()
        if not changed:
            return False
        try:
            self._put(changed)
        except SystemctlError:
            self._put({unit: before[unit] for unit in changed})
            systemctl("start", [*changed, static.PROXY])
            raise
        return True

    def _put(self, texts: Mapping[str, str]) -> None:
        for unit, text in texts.items():
            file = self._file(unit)
            if text:
                file.parent.mkdir(mode=0o755, exist_ok=True)
                replace_file(file, text.encode(), 0o644)
            else:
                file.unlink(missing_ok=True)
                if file.parent.is_dir() and not any(file.parent.iterdir()):
                    file.parent.rmdir()
        daemon_reload()
        self.say(f"restarting {', '.join(sorted(texts))}")
        systemctl("try-restart", texts)

    def _file(self, unit: str) -> Path:
        return self.units / f"{unit}.d" / DROP_IN


def _listeners(host: HostSettings) -> Iterator[tuple[str, Listen | Operator]]:
    return ((unit, getattr(host, table)) for unit, table in static.PORTS.items())


def _address(where: Listen | Operator) -> Ip:
    return ipaddress.ip_address("127.0.0.1" if where.address == "localhost" else where.address)


def _shown(where: Listen | Operator) -> str:
    address = _address(where)
    return f"[{address}]:{where.port}" if address.version == 6 else f"{address}:{where.port}"


def _is_taken(wanted: Ip, port: int, ours: Container[tuple[Ip, int]]) -> bool:
    """Whether something else listens there, or on every address at that port."""
    return any(
        at == port and (address == wanted or address.is_unspecified or wanted.is_unspecified)
        for address, at in _listened()
        if (address, at) not in ours
    )


def _listened() -> Iterator[tuple[Ip, int]]:
    for table in _TABLES:
        try:
            lines = table.read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue  # then the start of the socket tells
        for line in lines:
            _, local, _, state, *_ = line.split()
            if state == _LISTEN:
                address, port = local.split(":")
                yield _decoded(address), int(port, 16)


def _decoded(text: str) -> Ip:
    """An address as the kernel prints it: words of 32 bits, each in the machine's byte order."""
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    raw = b"".join(word.to_bytes(4, sys.byteorder) for word in words)
    family = socket.AF_INET6 if len(raw) == 16 else socket.AF_INET
    return ipaddress.ip_address(socket.inet_ntop(family, raw))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
