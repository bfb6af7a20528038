"""Brokers behind TLS: Apache Kafka with a certificate of an authority that only the tests know, asking for one back."""

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pyarrow import lib as pa

from headgate.spark_udfs.source.errors import BrokerUnreachable, NotAuthenticated
from headgate.spark_udfs.source.options import write_options
from headgate.spark_udfs.source.writing import write_batches
from tests.live.apache_kafka import SHORT_LIVED, KafkaNode
from tests.spark.source.topics import Topics, numbered, read

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

LOOPBACK = ipaddress.ip_address("127.0.0.1")


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs certificates, and writes them as PEM files."""

    folder: Path
    name: str
    key: ec.EllipticCurvePrivateKey

    @property
    def subject(self) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)])

    def certificate(self) -> Path:
        """The authority's own."""
        return self._write(self.subject, self.key, x509.BasicConstraints(ca=True, path_length=0), with_key=False)

    def issue(self, name: str, addresses: Sequence[x509.GeneralName] = ()) -> Path:
        """A key and its certificate in one file, as Kafka's PEM stores have it."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        key = ec.generate_private_key(ec.SECP256R1())
        return self._write(subject, key, x509.SubjectAlternativeName([*addresses, x509.DNSName(name)]), with_key=True)

    def _write(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType, *, with_key: bool
    ) -> Path:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self.subject)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        # Clocks of the same machine may be read a little apart.
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


@dataclass(frozen=True, slots=True)
class Guarded:
    topics: Topics
    options: dict[str, str]
    """With which a client is let in."""
    folder: Path


@pytest.fixture(scope="module")
def guarded(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("tls")
    ours = authority(folder, "authority")
    trusted, client = ours.certificate(), ours.issue("client")
    node = KafkaNode(folder / "node", flags=SHORT_LIVED)
    node._settings |= {
        "listeners": f"SSL://127.0.0.1:{node.port},CONTROLLER://127.0.0.1:{node.controller_port}",
        "advertised.listeners": f"SSL://127.0.0.1:{node.port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SSL:SSL",
        "inter.broker.listener.name": "SSL",
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(ours.issue("broker", [x509.IPAddress(LOOPBACK)])),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted),
    }
    node.start()
    names = {"ssl.ca.location": str(trusted), "ssl.certificate.location": str(client), "ssl.key.location": str(client)}
    settings = {"security.protocol": "SSL", **names}
    yield Guarded(Topics(node.address, settings), {f"kafka.{name}": value for name, value in settings.items()}, folder)
    node.stop()


def test_a_client_with_a_certificate_reads_and_writes(guarded: Guarded) -> None:
    topic = guarded.topics.create(2)
    guarded.topics.produce(topic, numbered(3))
    options = write_options({"bootstrap.servers": guarded.topics.address, "topic": topic, **guarded.options})
    rows = pa.RecordBatch.from_arrays([pa.array(["a", "b"])], names=["value"])
    assert write_batches(options, [rows]).records == 2
    assert len(read(guarded.topics.source(topic, **guarded.options))) == 5
    java = {
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": guarded.options["kafka.ssl.ca.location"],
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.location": guarded.options["kafka.ssl.certificate.location"],
    }
    assert len(read(guarded.topics.source(topic, **java))) == 5


def test_a_broker_is_not_trusted_on_its_word(guarded: Guarded) -> None:
    stranger = authority(guarded.folder, "stranger").certificate()
    with pytest.raises(NotAuthenticated, match=rf"at {guarded.topics.address} failed.*Set kafka\.ssl\.ca\.location"):
        read(guarded.topics.source("orders", **{**guarded.options, "kafka.ssl.ca.location": str(stranger)}))
    # The certificate is for 127.0.0.1, and nobody else.
    port = guarded.topics.address.rpartition(":")[2]
    by_name = {**guarded.options, "bootstrap.servers": f"localhost:{port}"}
    with pytest.raises(NotAuthenticated, match=f"at localhost:{port} failed.*Use a host name that the certificate"):
        read(guarded.topics.source("orders", **by_name))
    topic = guarded.topics.create()
    unchecked = {**by_name, "kafka.ssl.endpoint.identification.algorithm": "none"}
    assert read(guarded.topics.source(topic, **unchecked)) == []


def test_a_client_that_shows_nothing_is_not_let_in(guarded: Guarded) -> None:
    nobody = {name: value for name, value in guarded.options.items() if "certificate" not in name and "key" not in name}
    with pytest.raises(BrokerUnreachable, match=rf"{guarded.topics.address}.*kafka\.ssl\.certificate\.location"):
        read(guarded.topics.source("orders", **nobody))
