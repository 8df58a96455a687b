"""Drop-ins of units: the only module that knows Jinja2, and the only one that writes a unit.

Every value passes one of the functions of escape.py; none can become a directive of its own.
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import jinja2

from autobot_mcp_bridge.config.problem import json_path
from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.credential import Credential
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units import escape
from autobot_mcp_bridge.units.credentials import origin
from autobot_mcp_bridge.units.instances import DROP_IN
from autobot_mcp_bridge.units.packages import live
from autobot_mcp_bridge.units.packages.specs import Kind
from autobot_mcp_bridge.units.sandbox import confinement, image, names, network
from autobot_mcp_bridge.units.sandbox.confinement import PREFIX, Facts
from autobot_mcp_bridge.units.sandbox.profiles import profile_of

# systemd's `:` keeps `$` in the words as it is (systemd.service(5), "Command lines").
LITERAL = ":"
TEMPLATES = "_templates"  # a symlink in a checkout, a copy in a wheel


def drop_in(spec: ServerSpec, command: Command, facts: Facts | None = None) -> str:
    """The text of autobot-mcp-bridge@INSTANCE.service.d/50-mcp-bridge.conf.

    Raises:
        UsageError: a value that no unit can carry, or a setting that is not built yet; all of them
            with their places, none with its value.
    """
    facts = facts or Facts()
    found = [
        f"{json_path(loc)}: {clause}" for loc, clause in confinement.refusals(spec, command, facts)
    ]
    if found:
        raise UsageError(f"{spec.instance}: {'; '.join(found)}")
    return template(f"{DROP_IN}.j2").render(context(spec, command, facts))


def context(spec: ServerSpec, command: Command, facts: Facts) -> dict[str, object]:
    """What the template of a drop-in is rendered with."""
    own = confinement.directory(spec)
    home, cache_home = f"{facts.state}/{own}", f"{facts.cache}/{own}"
    shared = (*spec.paths.read, *spec.paths.write)
    profile = profile_of(spec, command)
    rooted = image.image_of(spec)
    script = facts.launcher if rooted is None else image.LAUNCHER
    launcher = (facts.python, "-I", "-S", script)
    return {
        "spec": spec,
        "image": rooted,
        "bound_launcher": f"{facts.launcher}:{image.LAUNCHER}",
        "user": spec.run_as or spec.id.unit_user,
        "directory": own,
        "working_directory": spec.cwd or home,
        "start": LITERAL + " ".join((*launcher, *map(escape.word, command.argv))),
        "variables": {PREFIX + name: text for name, text in _variables(spec, command, facts)},
        "profile": profile,
        "network": network.reach(spec, profile, facts.resolvers),
        "names": names.has_names(spec),
        "not_executable": (home, *(() if live.is_live(spec) else (cache_home,)), *shared),
        # The program that the administrator has named, wherever it lies, and no other there.
        "executable": (*(() if rooted else (facts.packages,)), command.argv[0]),
        # The store's own path is executable already, and could not be both (see the unit).
        "read_only": tuple(f"{facts.packages}/{kind.value}" for kind in Kind if rooted is None),
        "protect_home": "tmpfs" if confinement.below_homes(shared) else "yes",
        "credentials": [_credential(*pair, facts) for pair in sorted(spec.secrets.items())],
    }


def listen_drop_in(address: str, *, loopback: bool) -> str:
    """The text of a drop-in that has a socket unit listen on ADDRESS:PORT, and nowhere else.

    An address that ipaddress has printed holds no sign of systemd's but the % of a scope.
    """
    literal = address.replace("%", "%%")
    return template("listen.conf.j2").render(address=literal, loopback=loopback)


def watch_drop_in(folders: Sequence[str]) -> str:
    """The text of a drop-in that has a path unit watch directories, too."""
    return template("watch.conf.j2").render(folders=folders)


def _variables(spec: ServerSpec, command: Command, facts: Facts) -> list[tuple[str, str]]:
    return sorted(confinement.environment(spec, command, facts).items())


def _credential(variable: str, credential: Credential, facts: Facts) -> tuple[str, str, str]:
    found = origin(credential, facts)
    return found.directive, credential.id(variable), found.path


@cache
def template(name: str) -> jinja2.Template:
    """One of templates/, as Ansible would render it, too: a test compares."""
    source = files("autobot_mcp_bridge").joinpath(TEMPLATES, name)
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - no HTML; every value passes a filter of escape.py
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_one_line,
    )
    environment.filters |= {
        "path": escape.path,
        "bound": escape.bound,
        "value": escape.value,
        "assignment": escape.assignment,
    }
    return environment.from_string(source.read_text(encoding="utf-8"))


def _one_line(value: object) -> object:
    """The last gate: whatever a template forgets, no value begins a line.

    Raises:
        ValueError: it would.
    """
    if isinstance(value, str) and ("\n" in value or "\r" in value):
        raise ValueError("a value with a line break cannot stand in a unit")
    return value
