"""A removal for most lines of the protocol, and for keys and projects, by id."""

from removals.eras import OTHERS
from removals.principals import PRINCIPALS
from removals.transport import TRANSPORT

REMOVALS = {**TRANSPORT, **OTHERS, **PRINCIPALS}
