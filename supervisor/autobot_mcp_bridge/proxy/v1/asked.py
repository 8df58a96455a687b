"""One request to `/v1`, once it is known who asks and that the asker may."""

import re
from dataclasses import dataclass

from autobot_mcp_bridge.model.errors import INVALID_REQUEST
from autobot_mcp_bridge.policy.principals import Key, Principal, principal_of
from autobot_mcp_bridge.proxy.bridge import Bridge
from autobot_mcp_bridge.proxy.incoming import Refusal
from autobot_mcp_bridge.proxy.replies import error_reply
from autobot_mcp_bridge.proxy.served import Served

LIMIT, MAX_LIMIT = 50, 100  # servers of one page
MAX_CURSOR = 1024  # characters
_NUMBER = re.compile(r"[0-9]{1,4}")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a handler gets.

    Attributes:
        key: whose request it is.
        context: the project that it comes from.
        limit: how many are wanted at most.
        cursor: where the page before has ended; "" for the first page.
    """

    bridge: Bridge
    key: Key
    context: str | None
    limit: int = LIMIT
    cursor: str = ""

    def caller_of(self, served: Served) -> Principal:
        return principal_of(self.key, served.spec.instance, self.context)


def limit_of(text: str) -> int:
    """Read the query's `limit`.

    Raises:
        Refusal: 400.
    """
    if not _NUMBER.fullmatch(text) or not 1 <= int(text) <= MAX_LIMIT:
        raise bad_query("limit", f"1 to {MAX_LIMIT}")
    return int(text)


def cursor_of(text: str) -> str:
    """Read the query's `cursor`.

    Raises:
        Refusal: 400.
    """
    if not 0 < len(text) <= MAX_CURSOR:
        raise bad_query("cursor", f"1 to {MAX_CURSOR} characters of a next_cursor")
    return text


def bad_query(name: str, allowed: str) -> Refusal:
    text = f"query parameter {name}: allowed is {allowed}"
    return Refusal(error_reply(400, INVALID_REQUEST, text))
