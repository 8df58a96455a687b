"""From which project somebody calls, and which servers that opens (NV-24 to NV-29)."""

from autobot_mcp_bridge.model.agents import OVERSEERS
from autobot_mcp_bridge.model.names import is_part
from autobot_mcp_bridge.policy.principals import Key

HEADER = "X-Project"
_LONGEST_SHOWN = 64


class ProjectMismatchError(Exception):
    """The caller is known, but comes from another project than it has to; the message says how.

    It names no project but the caller's own words: whether there is such a server is not told.
    """


def context_of(key: Key, named: str | None) -> str | None:
    """The project that the holder of a key calls from: the key's, or the one that it names.

    Raises:
        ProjectMismatchError: both are there and differ, or what is named can be no project.
    """
    if named is None:
        return key.project
    if key.project is not None and named != key.project:
        text = f"{HEADER} says {_shown(named)}, and the key is bound to {key.project}"
        raise ProjectMismatchError(text)
    if not is_part(named):
        raise ProjectMismatchError(f"{HEADER} says {_shown(named)}, which can be no project")
    return named


def check_call(project: str | None, context: str | None) -> None:
    """Let nobody call a project's server from elsewhere; one without a project is its tenant's.

    The roles do not count here: they keep the view, not the calls.

    Raises:
        ProjectMismatchError: the caller comes from another project, or from none.
    """
    if project in (None, context):
        return
    if context is None:
        raise ProjectMismatchError(f"the server belongs to a project, which {HEADER} has to name")
    raise ProjectMismatchError(f"the server belongs to another project than {context}")


def check_named(project: str | None, named: str | None) -> None:
    """The same for who has shown a token of one server alone, whose route names the project.

    Raises:
        ProjectMismatchError: the header names another.
    """
    if named is not None and project is not None and named != project:
        raise ProjectMismatchError(f"{HEADER} says {_shown(named)}, and the server is of another")


def may_view(key: Key, project: str | None, context: str | None) -> bool:
    """Tell whether a key's holder sees a server of its tenant: as it may call, or as an overseer."""
    if project in (None, context):
        return True
    return context is None and not OVERSEERS.isdisjoint(key.roles)


def _shown(named: str) -> str:
    return ascii(named[:_LONGEST_SHOWN])
