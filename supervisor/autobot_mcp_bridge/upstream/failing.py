"""What a request that could not be carried means: for its client, and for the program."""

from autobot_mcp_bridge.model.errors import HEADER_MISMATCH
from autobot_mcp_bridge.upstream.endings import NO_PERMISSION, FailedError
from autobot_mcp_bridge.upstream.messages import Message, error_line, passed_on


def is_fatal(message: Message, failed: FailedError) -> bool:
    """Whether the conversation cannot even begin."""
    match message.method:
        case "initialize":  # 400 is an answer: to a version that the upstream does not speak
            return failed.http != 400 or failed.error is None
        case "server/discover":  # which may be refused by whoever is to be initialized
            moved = failed.http is not None and 300 <= failed.http < 400
            return failed.is_out_of_reach or moved or failed.status == NO_PERMISSION
    return False


def lacks_headers(failed: FailedError) -> bool:
    """Whether parameters of a tool had to be in headers as well."""
    return failed.error is not None and failed.error.get("code") == HEADER_MISMATCH


def error_of(message: Message, failed: FailedError) -> bytes:
    """The answer to a request that could not be carried."""
    wait = {} if failed.retry_after is None else {"retryAfter": failed.retry_after}
    if failed.error is not None:
        data = failed.error.get("data")
        more = data if isinstance(data, dict) else {} if data is None else None
        error = {**failed.error, "data": {**wait, **more}} if wait and more is not None else None
        return passed_on(message.id, error or failed.error)
    http = {} if failed.http is None else {"httpStatus": failed.http}
    return error_line(message.id, failed.text, data={**http, **wait})
