"""A certificate authority of a test's own."""

import datetime as dt
import ipaddress
import ssl
from collections.abc import Iterable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

_DAY = dt.timedelta(days=1)


class Authority:
    """Writes PEM files into a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test's authority")])
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        own = self._begun(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        own = own.add_extension(usage, critical=True)
        self.certificate = own.sign(self._key, hashes.SHA256())
        self.file = directory / "ca.pem"
        self.file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def server(self, *names: str) -> ssl.SSLContext:
        """What a server of these names needs."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        alternative = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = self._begun(subject, key).add_extension(alternative, critical=False)
        signed = builder.add_extension(identifier, critical=False).sign(self._key, hashes.SHA256())
        file = self._directory / f"{names[0].replace('*', '_')}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        file.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def renew(
        self,
        certificate: Path,
        key: Path | None = None,
        *,
        names: Iterable[str] = ("localhost", "127.0.0.1"),
        days: float = 1.0,
        rsa_key: bool = False,
    ) -> bytes:
        """Write a chain, and its new key, each at once; the certificate in DER.

        Args:
            certificate: its file.
            key: its key's; None: the key is written nowhere.
            names: hosts and addresses.
            days: until it expires; less than 0: it has.
            rsa_key: RSA, not ECDSA.
        """
        private: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
        if rsa_key:
            private = rsa.generate_private_key(65537, 2048)
        else:
            private = ec.generate_private_key(ec.SECP256R1())
        found: list[x509.GeneralName] = []
        for name in names:
            try:
                found.append(x509.IPAddress(ipaddress.ip_address(name)))
            except ValueError:
                found.append(x509.DNSName(name))
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test's server")])
        builder = self._begun(subject, private, days)
        for extension in (x509.SubjectAlternativeName(found), identifier):
            builder = builder.add_extension(extension, critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        pem = serialization.Encoding.PEM
        _replace(certificate, signed.public_bytes(pem) + self.file.read_bytes(), 0o644)
        if key is not None:
            form = serialization.PrivateFormat.PKCS8
            _replace(key, private.private_bytes(pem, form, serialization.NoEncryption()), 0o600)
        return signed.public_bytes(serialization.Encoding.DER)

    def client(self) -> ssl.SSLContext:
        """What a client needs that trusts this authority only."""
        return ssl.create_default_context(cafile=str(self.file))

    def _begun(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey,
        days: float = 1.0,
    ) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 10 * _DAY)
            .not_valid_after(now + days * _DAY)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
        )


def _replace(path: Path, data: bytes, mode: int) -> None:
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_bytes(data)
    fresh.chmod(mode)
    fresh.rename(path)
