"""The certificate that clients are shown: what is in force, and the files that it comes from."""

import asyncio
import logging
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from autobot_mcp_bridge.config.certificates import (
    Certificate,
    CertificateError,
    certificate_of,
    read_pair,
    server_context,
)
from autobot_mcp_bridge.config.watch import mark

# How often the files are looked at. They are read once they have been the same for two looks: the
# certificate and its key are two files, and whoever renews them writes one after the other.
POLL = 0.5
# At boot, when apply is about to take the certificate: whoever connects waits in the socket meanwhile.
FIRST_WITHIN = 10.0
# Certificates that are told to the command line as ours: the one in force, and the one before,
# which a connection that was opened a moment ago has been shown.
KNOWN = 2

log = logging.getLogger(__name__)


class Tls:
    """A pair of files, read at first and whenever they change.

    What cannot be used changes nothing: what was in force stays so.

    Attributes:
        context: for the listener, for good: each handshake is given the certificate then in force.
        current: that one; None before there was any that could be used.
        trouble: why the files are not in force; empty: they are.
        known: fingerprints, newest last.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = certificate, key
        self.current: Certificate | None = None
        self.trouble = ""
        self.known: deque[str] = deque(maxlen=KNOWN)
        self._ready = asyncio.Event()
        self._seen = self._marked = ""
        # A fresh context for each certificate, and not load_cert_chain() on the live one: that keeps
        # a certificate for each type of key, so an RSA one would outlive its ECDSA successor, and it
        # drops the key when the pair does not match (OpenSSL 3, measured).
        self.context = server_context()
        self.context.sni_callback = self._choose

    def _choose(
        self, handshake: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _: ssl.SSLContext
    ) -> int | None:
        if self.current is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        handshake.context = self.current.context
        return None

    def read(self) -> None:
        """Put what the files hold in force. Blocks (disk, some milliseconds of arithmetic).

        Raises:
            CertificateError: it cannot be used; `trouble` says so, too.
        """
        self._seen = self._marked = mark(*self._files)
        try:
            found = certificate_of(read_pair(*self._files))
        except CertificateError as error:
            self.trouble = str(error)
            raise
        self.trouble = ""
        if self.current is not None and self.current.fingerprint == found.fingerprint:
            return  # the same, written again; its key cannot be another
        self.current = found
        self.known.append(found.fingerprint)
        until = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(found.expires))
        log.info("tls: the certificate for %s counts until %s", ", ".join(found.names), until)

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        """Take over changes of the files within the block, each within a second or two.

        Where there is no certificate yet, one is waited for first, for FIRST_WITHIN seconds.
        """
        if self.current is not None:
            self._ready.set()
        task = asyncio.create_task(self._follow(), name="tls")
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_WITHIN):
                    await self._ready.wait()
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(POLL)
            try:
                await asyncio.to_thread(self._look)
            except Exception:
                log.exception("fault while reading the certificate")
            if self.current is not None:
                self._ready.set()

    def _look(self) -> None:
        now, before = mark(*self._files), self._marked
        self._marked = now
        if now == self._seen or now != before:
            return
        with suppress(CertificateError):
            self.read()
        if self.trouble:
            stays = "; the one before stays in force" if self.current is not None else ""
            log.error("tls: %s%s", self.trouble, stays)
