"""What came of one try to start a server."""

from dataclasses import dataclass
from enum import IntEnum

from autobot_mcp_bridge.model.death import Death, DeathCause


class Stage(IntEnum):
    """How far a server came; the names are for people."""

    SETUP = 0
    START = 1
    INITIALIZE = 2
    TOOLS = 3
    READY = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """One try.

    Attributes:
        stage: the step that failed; READY: none did.
        said: one sentence of what happened, redacted.
        death: how its process ended by itself, if it did.
        noise: the first line of its stdout that is no JSON-RPC, redacted.
        words: the last lines of its stderr, redacted, oldest first.
        seconds: from the connection to the initialize answer; None without one.
        unread: it has not read what was asked.
        flushed: it has answered, but only once its stdin was closed.
        tools: how many it lists.
    """

    stage: Stage
    said: str = ""
    death: Death | None = None
    noise: str = ""
    words: tuple[str, ...] = ()
    seconds: float | None = None
    unread: bool = False
    flushed: bool = False
    tools: int | None = None

    @property
    def works(self) -> bool:
        return self.stage is Stage.READY

    @property
    def cause(self) -> DeathCause | None:
        return self.death.cause if self.death is not None else None

    @property
    def silent(self) -> bool:
        """It lived, and did not answer."""
        return self.stage is Stage.INITIALIZE and self.death is None

    def as_data(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "works": self.works,
            "stage": self.stage.name.lower(),
            "said": self.said,
            "death": self.death.as_data() if self.death is not None else None,
            "seconds": None if self.seconds is None else round(self.seconds, 3),
            "tools": self.tools,
        }
