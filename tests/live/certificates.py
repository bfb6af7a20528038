"""A certificate authority for the tests. Writes keys and certificates as PEM files."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LOOPBACK = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


@dataclass(frozen=True, slots=True)
class Authority:
    folder: Path
    name: str
    key: ec.EllipticCurvePrivateKey

    @property
    def subject(self) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)])

    def certificate(self) -> Path:
        """Write the certificate of the authority."""
        return self._write(self.subject, self.key, x509.BasicConstraints(ca=True, path_length=0), with_key=False)

    def issue(self, name: str, addresses: Sequence[x509.GeneralName] = ()) -> Path:
        """Write a key and its certificate to one file, as in Kafka's PEM stores."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        key = ec.generate_private_key(ec.SECP256R1())
        return self._write(subject, key, x509.SubjectAlternativeName([*addresses, x509.DNSName(name)]), with_key=True)

    def _write(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType, *, with_key: bool
    ) -> Path:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self.subject)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        # Allow for clock differences between processes.
        builder = builder.not_valid_before(now - timedelta(minutes=5)).not_valid_after(now + timedelta(days=1))
        signed = builder.add_extension(extension, critical=False).sign(self.key, hashes.SHA256())
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path = self.folder / f"{subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value!s}.pem"
        path.write_bytes((secret if with_key else b"") + signed.public_bytes(serialization.Encoding.PEM))
        return path


def authority(folder: Path, name: str) -> Authority:
    return Authority(folder, name, ec.generate_private_key(ec.SECP256R1()))
