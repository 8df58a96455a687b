"""What a lab says when it cannot do what it was asked for."""


class LabError(Exception):
    """The message tells what is wrong, and where there is one, the last output."""


class LabTimeoutError(LabError):
    """Something did not happen within its bound."""
