"""How many calls of one caller are in flight at once."""

from autobot_mcp_bridge.channels.call import Call
from autobot_mcp_bridge.model.errors import CallError, Cause

# Callers without a call in flight that are remembered; then they are forgotten, all at once.
MOST_IDLE = 1024


class Place:
    """One call's place: taken until the call is done, whoever still waits for its answer.

    A client that goes does not end its call at the server, and so does not free its place.
    """

    __slots__ = ("_given_up", "call")

    def __init__(self) -> None:
        self.call: Call | None = None  # set once it has been sent
        self._given_up = False

    def give_up(self) -> None:
        """It has not been sent, and will not be."""
        self._given_up = True

    @property
    def over(self) -> bool:
        return self._given_up or (self.call is not None and self.call.done)


class InFlight:
    """The places of one server, by caller."""

    def __init__(self) -> None:
        self._places: dict[str, list[Place]] = {}

    def take(self, name: str, most: int) -> Place:
        """A place.

        Raises:
            CallError: all are taken.
        """
        taken = [place for place in self._places.get(name, ()) if not place.over]
        if len(taken) >= most:
            text = f"{most} calls are in flight already"
            raise CallError(Cause.TOO_MANY_CALLS, text, retry_after=1)
        place = Place()
        self._places[name] = [*taken, place]
        if len(self._places) > MOST_IDLE:
            self._forget_idle()
        return place

    def _forget_idle(self) -> None:
        for name, places in list(self._places.items()):
            if all(place.over for place in places):
                del self._places[name]
