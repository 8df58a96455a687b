"""Errors of configuration and its commands; `exit_code` follows sysexits(3)."""

from autobot_mcp_bridge.model.errors import BridgeError

# EX_CONFIG of sysexits(3): the configuration is in force, but for servers that were named.
LEFT_OUT = 78


class DataError(BridgeError):
    """The configuration is, or would become, wrong; the message says where."""

    exit_code = 65  # EX_DATAERR


class MissingError(BridgeError):
    """A file or a server that was named does not exist."""

    exit_code = 66  # EX_NOINPUT


class UnavailableError(BridgeError):
    """Something that has to run does not, or did not answer in time."""

    exit_code = 69  # EX_UNAVAILABLE


class DeniedError(BridgeError):
    """This user, or this token, may not."""

    exit_code = 77  # EX_NOPERM
