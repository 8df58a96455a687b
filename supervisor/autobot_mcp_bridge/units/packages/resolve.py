"""What a definition's command means on this host now."""

from collections.abc import Mapping, Sequence

from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.units.packages.installer import package_command
from autobot_mcp_bridge.units.packages.job import InstallError
from autobot_mcp_bridge.units.packages.plain import plain_command
from autobot_mcp_bridge.units.packages.specs import PackageSpec, parse_command
from autobot_mcp_bridge.units.packages.store import Store


def resolve(
    argv: Sequence[str], store: Store, environ: Mapping[str, str], *, live: bool = False
) -> Command | PackageSpec:
    """The command to exec; or the package that has to be installed first. Blocks (disk only).

    Args:
        argv: the definition's words.
        store: of the packages.
        environ: whose PATH is searched.
        live: npx and uvx are programs like any other (units/packages/live.py).

    Raises:
        InstallError: it cannot become a command; the message says why.
    """
    try:
        package = None if live else parse_command(argv)
        if package is None:
            return plain_command(argv, environ)
        done = store.find(package)
        return package if done is None else package_command(package, done)
    except ValueError as error:
        raise InstallError(str(error)) from None
    except OSError as error:
        raise InstallError(f"{error.filename or argv[0]}: {error.strerror}") from None
