"""URLs of other services: which may carry tokens and keys."""

import ipaddress
from urllib.parse import SplitResult, urlsplit


def is_safe_url(url: str) -> bool:
    """Tell whether it is https, or http to this machine itself, without user or fragment.

    RFC 8414 section 2 and RFC 9728 section 3 ask for https; tests have an issuer on loopback.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port  # a port that is none raises
    except ValueError:
        return False
    if not host or "@" in parts.netloc or "#" in url or not url.isprintable() or " " in url:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))


def is_base_url(url: str) -> bool:
    """Tell whether it is such a URL of a scheme, a host and perhaps a port, in lower case."""
    if not is_safe_url(url):
        return False
    parts: SplitResult = urlsplit(url)
    return url == f"{parts.scheme}://{parts.netloc}" == url.lower()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
