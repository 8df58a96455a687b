"""All that an installation could leave on a host: to be compared before and after."""

from lab.containers import Container

# Where an installation may put something; /proc and the like are the kernel's.
LISTED = ("etc", "usr", "opt", "home", "srv", "var/lib", "var/cache", "var/spool", "run")
# Written by systemd, dbus, polkit or Debian's tools as they go, or by the test's own copying.
OF_OTHERS = (
    "run/systemd",
    "run/log",
    "run/dbus",
    "run/user",
    "run/udev",
    "var/lib/systemd",
    "opt/mcp-servers",
    "etc/passwd-",
    "etc/group-",
    "etc/shadow-",
    "etc/gshadow-",
    "etc/.pwd.lock",
)


def listing(container: Container) -> set[str]:
    """Every path with its kind, owner, rights and target, and the users and groups."""
    found = container.check(
        *("find", *(f"/{name}" for name in LISTED), "-xdev"),
        *("-printf", "%P %H %y %U:%G %m %l\\n"),
        timeout=60.0,
    )
    lines = []
    for line in found.splitlines():
        path, top, rest = line.split(" ", 2)
        name = f"{top[1:]}/{path}".rstrip("/")
        if not any(name == other or name.startswith(f"{other}/") for other in OF_OTHERS):
            lines.append(f"{name} {rest}")
    users = container.check("getent", "passwd") + container.check("getent", "group")
    return {*lines, *users.splitlines()}
