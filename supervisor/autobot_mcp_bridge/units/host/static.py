"""The files that are the same on every host, and where they belong: pure."""

_UNITS = "usr/lib/systemd/system"
_UNIT_FILES = (
    "autobot-mcp-bridge@.service",
    "autobot-mcp-bridge@.socket",
    "autobot-mcp-bridge.target",
    "mcpbridge.slice",
    "mcp-bridge-proxy.service",
    "mcp-bridge-proxy.socket",
    "mcp-bridge-operator.socket",
    "mcp-bridge-control.socket",
    "mcp-bridge-apply.service",
    "mcp-bridge-apply.path",
    "mcp-bridge-changed.service",
    "mcp-bridge-fetch@.service",
    "mcp-bridge-fetched.path",
    "mcp-bridge-probe.service",
    "mcp-bridge-gc.service",
    "mcp-bridge-gc.timer",
    "mcp-bridge-egress.service",
    "mcp-bridge-egress@.service",
    "mcp-bridge-egress@.socket",
)
PROXY = "mcp-bridge-proxy.service"
# Runs while a server needs it.
EGRESS = "mcp-bridge-egress.service"
# The proxy's ports: unit to the table of host.toml, whose defaults the unit file has.
PORTS = {"mcp-bridge-proxy.socket": "listen", "mcp-bridge-operator.socket": "operator"}
SOCKETS = (*PORTS, "mcp-bridge-control.socket")
# Have apply run by itself: for changes of the files, and for installs that have ended.
WATCHES = ("mcp-bridge-apply.path", "mcp-bridge-fetched.path")
# Enabled and started when everything is in place.
ENABLED = (
    "autobot-mcp-bridge.target",
    *SOCKETS,
    PROXY,
    *WATCHES,
    "mcp-bridge-gc.timer",
    "mcp-bridge-apply.service",
)

# Name among the templates to its place below the root directory.
FILES = {
    **{name: f"{_UNITS}/{name}" for name in _UNIT_FILES},
    "launch.py": "usr/lib/mcp-bridge/launch.py",
    "ended.py": "usr/lib/mcp-bridge/ended.py",
    "probe.py": "usr/lib/mcp-bridge/probe.py",
    "sysusers.conf": "usr/lib/sysusers.d/mcp-bridge.conf",
    "tmpfiles.conf": "usr/lib/tmpfiles.d/mcp-bridge.conf",
    "polkit.rules": "usr/share/polkit-1/rules.d/50-mcp-bridge.rules",
}
# Symlink to what it says. systemctl and drop-ins work under both names; the journal and the bus
# know the real one only.
ALIASES = {
    f"{_UNITS}/mcp-bridge@.{kind}": f"autobot-mcp-bridge@.{kind}" for kind in ("service", "socket")
}
# What the program writes of itself, man pages and completions: their names follow its commands.
PAGES = (
    "usr/share/man/man1/mcp-bridge.1",
    "usr/share/man/man1/mcp-bridge-*.1",
    "usr/share/man/man5/mcp-bridge-*.5",
    "usr/share/bash-completion/completions/mcp-bridge",
    "usr/share/zsh/vendor-completions/_mcp-bridge",
    "usr/share/fish/vendor_completions.d/mcp-bridge.fish",
)
# Which an installation may have made for them, the inner ones first.
PAGE_DIRECTORIES = (
    "usr/share/man/man1",
    "usr/share/man/man5",
    "usr/share/bash-completion/completions",
    "usr/share/bash-completion",
    "usr/share/zsh/vendor-completions",
    "usr/share/zsh",
    "usr/share/fish/vendor_completions.d",
    "usr/share/fish",
)
