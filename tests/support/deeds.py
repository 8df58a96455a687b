"""Trivial instances for tests of the watcher: bare units that end as their name says."""

from autobot_mcp_bridge.supervision.unit_paths import unit_of
from lab.containers import Container

# What an instance does is the first part of its name.
_DEED = """
deed="${1%%.*}"
case "$deed" in
exit*) exit "${deed#exit}" ;;
clean) exit 0 ;;
kill) kill -KILL $$ ;;
forbidden) kill -0 $$ ;;
sleep) exec sleep 1000 ;;
stubborn) trap 'exit 7' TERM; while :; do sleep 0.05; done ;;
esac
"""
_SERVICE = """
[Unit]
StartLimitIntervalSec=0
[Service]
Type=exec
ExecStart=sh /opt/watch/deed %i
ExecStopPost=true
"""
_SOCKET = "[Socket]\nListenStream=/run/watch/%i.sock\n"
_DROP_INS = {
    "nobody": "User=nobody-of-this-name",
    "nothing": "ExecStart=\nExecStart=/nowhere/program",
    "unmounted": "BindReadOnlyPaths=/nowhere/folder",
    "uncredited": "LoadCredential=word:/nowhere/file",
    "forbidden": "SystemCallFilter=~kill\nLimitCORE=0",
    "sleep.limited": "RuntimeMaxSec=200ms",
    "sleep.watched": "WatchdogSec=200ms\nLimitCORE=0",
}


def lay(container: Container) -> None:
    """Put these templates where the project's own would be."""
    container.write("/opt/watch/deed", _DEED)
    container.write("/etc/systemd/system/autobot-mcp-bridge@.service", _SERVICE)
    container.write("/etc/systemd/system/autobot-mcp-bridge@.socket", _SOCKET)
    for instance, text in _DROP_INS.items():
        folder = f"/etc/systemd/system/{unit_of(instance)}.d"
        container.write(f"{folder}/50.conf", f"[Service]\n{text}\n")
    container.check("systemctl", "daemon-reload")
