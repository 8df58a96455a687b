"""Whether the token of a header file opens a server; prints no token.

counts.py HEADER-FILE ADDRESS:PORT PATH
"""

import http.client
import sys
from pathlib import Path

WITHIN = 10.0  # seconds for the proxy's answer


def main(file: str, address: str, path: str) -> str | None:
    """What is wrong, or None."""
    name, _, value = Path(file).read_text(encoding="ascii").strip().partition(": ")
    connection = http.client.HTTPConnection(address, timeout=WITHIN)
    try:
        headers = {name: value, "Host": "localhost", "Accept": "text/event-stream"}
        connection.request("GET", path, headers=headers)
        status = connection.getresponse().status
    finally:
        connection.close()
    # There is no session, which is another answer; without a valid token it is this one.
    if status != http.client.UNAUTHORIZED:
        return None
    return f"{path}: the new token does not count; it is in {file}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
