"""The certificate of the clients' port, with its key: read as one, and tried before it counts."""

import os
import re
import ssl
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Never

from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.config.files import RefusedFileError, read_bounded

_FIRST = re.compile(
    rb"-----BEGIN CERTIFICATE-----\s.+?\s-----END CERTIFICATE-----", re.DOTALL
)  # RFC 7468
_OTHERS = 0o007
# Words of OpenSSL's that people would have to look up.
_REASONS = {
    "KEY_VALUES_MISMATCH": "the key is not the certificate's",
    "EE_KEY_TOO_SMALL": "the key is too short; allowed are RSA of 2048 bits or more, and ECDSA",
    "CA_MD_TOO_WEAK": "it is signed with a digest that is too weak",
}
_ROUNDS = 4  # flights of a handshake between the two sides of one process


class CertificateError(DataError):
    """A certificate or key that cannot be used; the message is a clause without any secret."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its key, which has done a handshake.

    Attributes:
        names: what it is for, of subjectAltName (RFC 5280 section 4.2.1.6).
        expires: when it does, in seconds since the epoch.
        fingerprint: sha256 of its DER form, in hex.
        context: serves it.
    """

    names: tuple[str, ...]
    expires: float
    fingerprint: str
    context: ssl.SSLContext = field(repr=False)


def read_pair(certificate: Path, key: Path) -> bytes:
    """Read both files, as one PEM document: the key first.

    Raises:
        CertificateError: one is missing, unreadable, too large, or open to others; it says which.
    """
    return b"\n".join(_read(path, secret=path == key) for path in dict.fromkeys((key, certificate)))


def _read(path: Path, *, secret: bool) -> bytes:
    try:
        data = read_bounded(path)
        if secret and path.stat().st_mode & _OTHERS:
            raise RefusedFileError(f"others may read the key; chmod o-rwx {path}")
    except FileNotFoundError:
        raise CertificateError(f"{path}: no such file") from None
    except (OSError, RefusedFileError) as error:
        raise CertificateError(f"{path}: {error}") from None
    return data


def certificate_of(pem: bytes) -> Certificate:
    """Try a key and the chain of its certificate, by a handshake within this process.

    The client of that handshake trusts this one certificate, so that everything but its issuer is
    judged as clients do: dates, purpose, signature, and whether the key is its own. Blocks (some
    milliseconds of arithmetic).

    Raises:
        CertificateError: it cannot be used now.
    """
    first = _FIRST.search(pem)
    if first is None:
        raise CertificateError("there is no certificate in it (PEM)")
    context = server_context()
    try:
        _load(context, pem)
        found = _handshake(context, first[0].decode("ascii"))
    except ssl.SSLCertVerificationError as error:
        raise CertificateError(f"no client would take it: {error.verify_message}") from None
    except (ssl.SSLError, ValueError) as error:
        raise CertificateError(_reason(error)) from None
    der = ssl.PEM_cert_to_DER_cert(first[0].decode("ascii"))
    names = tuple(name for _, name in found.get("subjectAltName", ()))
    expires = ssl.cert_time_to_seconds(found["notAfter"])
    return Certificate(names, expires, sha256(der).hexdigest(), context)


def server_context() -> ssl.SSLContext:
    """TLS 1.2 and 1.3, with what Python and OpenSSL take for secure (DECISIONS), and HTTP/1.1.

    Without compression and renegotiation (RFC 9325 sections 3.3 and 3.5).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    return context


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    """Load from memory: the files may be others by the time that OpenSSL opens them."""
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(pem)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=_is_encrypted)
    finally:
        os.close(descriptor)


def _is_encrypted() -> Never:
    # Without this OpenSSL would ask the terminal.
    raise CertificateError("the key is encrypted; allowed is a key without a passphrase")


def _handshake(context: ssl.SSLContext, trusted: str) -> dict[str, Any]:
    """The certificate as a client sees it."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(cadata=trusted)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        client.wrap_bio(back, there),
        context.wrap_bio(there, back, server_side=True),
    )
    for _ in range(_ROUNDS):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    found: dict[str, Any] = sides[0].getpeercert() or {}
    return found


def _reason(error: Exception) -> str:
    word = getattr(error, "reason", None) or ""
    return _REASONS.get(word) or f"no certificate and key in PEM form ({word.lower() or error})"
