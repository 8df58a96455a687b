"""Whether the token of a header file opens a server; prints no token.

counts.py HEADER-FILE http(s)://ADDRESS:PORT PATH
"""

import http.client
import ssl
import sys
from pathlib import Path
from urllib.parse import urlsplit

WITHIN = 10.0  # seconds for the proxy's answer


def connect(url: str) -> http.client.HTTPConnection:
    """Connect to this host's proxy: systemd holds its port, and no certificate is for the address."""
    parts = urlsplit(url)
    if parts.scheme != "https":
        return http.client.HTTPConnection(parts.netloc, timeout=WITHIN)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(parts.netloc, timeout=WITHIN, context=context)


def main(file: str, url: str, path: str) -> str | None:
    """What is wrong, or None."""
    name, _, value = Path(file).read_text(encoding="ascii").strip().partition(": ")
    connection = connect(url)
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
