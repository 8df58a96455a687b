"""A certificate authority of a test's own."""

import datetime as dt
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
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

    def client(self) -> ssl.SSLContext:
        """What a client needs that trusts this authority only."""
        return ssl.create_default_context(cafile=str(self.file))

    def _begun(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey
    ) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
        )
