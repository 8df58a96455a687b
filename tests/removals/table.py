"""A removal for most lines of the protocol, by id."""

from removals.eras import OTHERS
from removals.transport import TRANSPORT

REMOVALS = {**TRANSPORT, **OTHERS}
