"""The states of a server, as people and metrics see them."""

from enum import StrEnum


class State(StrEnum):
    SLEEPING = "sleeping"  # no process; the next call starts one
    WAITING = "waiting"  # a start is under way, nothing is connected yet
    STARTING = "starting"  # it runs, its initialize answer is missing
    READY = "ready"
    STOPPING = "stopping"  # its stdin is closed
    STOPPED = "stopped"  # by the operator, until it is started again
    BROKEN = "broken"  # the breaker is open
    # why a sleeping server cannot be started
    INSTALLING = "installing"
    INSTALL_FAILED = "install_failed"
    CREDENTIAL_MISSING = "credential_missing"
    DISABLED = "disabled"
    REFUSED = "refused"  # this host cannot give it what its definition asks for
    MASKED = "masked"  # its unit, by the operator
