"""Doing what was planned: secrets first, then the definitions, all of it or nothing."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from autobot_mcp_bridge.config import many
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.connect.imported.plan import Named, Planned, What
from autobot_mcp_bridge.model.errors import BridgeError
from autobot_mcp_bridge.units.secrets import Secrets


def carry_out(
    places: Places, store: Secrets | None, planned: Sequence[Planned], *, seen: str
) -> list[Path]:
    """Write secrets and definitions; the files of definitions that were written.

    A server must not be there before its secrets, or its first start would miss them.

    Args:
        places: of the configuration.
        store: of the secrets; None where no entry has any.
        planned: by `Planner.plan`.
        seen: the digest of the configuration that it was planned for.

    Raises:
        BridgeError, OSError: something could not be written; all is as it was.
    """
    wanted = [each for each in planned if each.what is not What.SKIPPED and each.server]
    secrets = list(_to_put(wanted))
    before: list[tuple[str, bytes | None]] = []
    try:
        if store is not None:
            for each in secrets:
                before.append((each.name, store.sealed(each.name)))
                value = (each.secret.value or "").encode()
                store.put(each.name, value, (), there=each.stored)
        added = {each.server: each.settings for each in wanted if _is_new(each) and each.server}
        replaced = {
            each.server: each.settings
            for each in wanted
            if each.settings and each.replaces and each.server
        }
        return many.put(places, added, replaced, seen=seen) if added or replaced else []
    except BaseException:
        if store is not None:
            for name, sealed in reversed(before):
                with suppress(BridgeError, OSError):  # what has failed first is what is told
                    store.put_back(name, sealed)
        raise


def _to_put(planned: Iterable[Planned]) -> Iterable[Named]:
    return (named for each in planned for named in each.secrets if named.put)


def _is_new(planned: Planned) -> bool:
    return bool(planned.settings) and not planned.replaces
