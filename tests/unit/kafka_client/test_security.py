"""TLS and SASL properties of Kafka's clients, and the arguments of aiokafka."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from headgate.kafka_client import security
from headgate.kafka_client.errors import InvalidProperty
from headgate.kafka_client.security import Security

SASL = {"kafka.security.protocol": "SASL_PLAINTEXT"}
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def read_security(properties: dict[str, str]) -> Security:
    """With the prefix of Spark's options."""
    return security.read_security(properties, "kafka.")


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate that it signed itself, in one file, as Kafka's PEM stores have it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    certificate = builder.sign(key, hashes.SHA256())
    text = certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = tmp_path_factory.mktemp("pem") / "both.pem"
    path.write_bytes(text)
    return path


def test_nothing_said_is_plaintext() -> None:
    assert read_security({}).client_arguments() == {"security_protocol": "PLAINTEXT"}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "scram-sha-512"])
def test_sasl_by_name_and_password(mechanism: str) -> None:
    given = {"kafka.sasl.mechanism": mechanism, "kafka.sasl.username": "me", "kafka.sasl.password": "secret"}
    assert read_security({**SASL, **given}).client_arguments() == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism.upper(),
        "sasl_plain_username": "me",
        "sasl_plain_password": "secret",
    }


@pytest.mark.parametrize(
    ("text", "password"),
    [
        (f'{SCRAM} required username="me" password="a b;c";', "a b;c"),
        (f"{SCRAM} required\n  username='me'\n  password='x';", "x"),
        (f'{SCRAM} required password="quo\\"te" username=me', 'quo"te'),
    ],
)
def test_sasl_as_java_has_it(text: str, password: str) -> None:
    given = {"kafka.sasl.mechanism": "SCRAM-SHA-512", "kafka.sasl.jaas.config": text}
    arguments = read_security({**SASL, **given}).client_arguments()
    assert (arguments["sasl_plain_username"], arguments["sasl_plain_password"]) == ("me", password)


def test_javas_plain_module_says_the_mechanism_itself() -> None:
    found = read_security({**SASL, "kafka.sasl.jaas.config": f'{PLAIN} required username="u" password="p";'})
    assert found.mechanism == "PLAIN"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"kafka.security.protocol": "TLS"}, "one of PLAINTEXT"),
        ({"kafka.sasl.username": "me"}, "requires kafka.security.protocol SASL_SSL"),
        ({"kafka.ssl.ca.location": "ca.pem"}, "requires kafka.security.protocol SSL"),
        (SASL, "kafka.sasl.mechanism"),
        ({**SASL, "kafka.sasl.mechanism": "GSSAPI"}, "must be one of PLAIN"),
        ({**SASL, "kafka.sasl.mechanism": "PLAIN"}, "kafka.sasl.username"),
        ({**SASL, "kafka.sasl.mechanism": "PLAIN", "kafka.sasl.username": "me"}, "kafka.sasl.password"),
        ({**SASL, "kafka.sasl.jaas.config": "nonsense"}, "PlainLoginModule or ScramLoginModule"),
        (
            {**SASL, "kafka.sasl.mechanism": "PLAIN", "kafka.sasl.jaas.config": f'{SCRAM} required username="u";'},
            "not for PLAIN",
        ),
        ({"kafka.security.protocol": "SSL", "kafka.ssl.truststore.location": "t.jks"}, "export it as PEM"),
        ({"kafka.security.protocol": "SSL", "kafka.ssl.key.location": "k.pem"}, "certificate.location"),
        (
            {"kafka.security.protocol": "SSL", "kafka.ssl.endpoint.identification.algorithm": "ldap"},
            "must be https or none",
        ),
    ],
)
def test_contradictory_properties_are_rejected(given: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidProperty) as failed:
        read_security(given)
    assert problem in str(failed.value)


@pytest.mark.parametrize(
    "names",
    [
        ("kafka.ssl.ca.location", "kafka.ssl.certificate.location", "kafka.ssl.key.location"),
        ("kafka.ssl.truststore.location", "kafka.ssl.keystore.location", None),
    ],
)
def test_tls_takes_pem_files_by_either_clients_names(pem: Path, names: tuple[str, str, str | None]) -> None:
    given = {name: str(pem) for name in names if name is not None}
    types = {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.keystore.type": "PEM"}
    found = read_security({"kafka.security.protocol": "SSL", **types, **given})
    context = found.client_arguments()["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.cert_store_stats()["x509"] == 1


def test_tls_takes_certificates_as_text_and_a_host_that_is_not_checked(pem: Path) -> None:
    given = {
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.certificates": pem.read_text().partition("-----BEGIN PRIVATE")[0],
        "kafka.ssl.endpoint.identification.algorithm": "",
    }
    context = read_security(given).client_arguments()["ssl_context"]
    assert not context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_a_file_that_is_not_there_is_named() -> None:
    found = read_security({"kafka.security.protocol": "SSL", "kafka.ssl.ca.location": "no/such.pem"})
    with pytest.raises(InvalidProperty, match=r"no/such\.pem"):
        found.client_arguments()


def test_names_without_a_prefix_are_those_of_a_properties_file() -> None:
    given = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "me", "sasl.password": "x"}
    assert security.read_security(given).protocol == "SASL_SSL"
    with pytest.raises(InvalidProperty, match=r"^sasl\.mechanism: required with SASL_SSL"):
        security.read_security({"security.protocol": "SASL_SSL"})


def test_an_unsupported_security_property_is_rejected_and_others_are_ignored() -> None:
    security.check_names(["bootstrap.servers", "acks", "sasl.username"])
    with pytest.raises(InvalidProperty, match=r"ssl\.provider"):
        security.check_names(["ssl.provider"])


def test_oauth_takes_the_names_of_both_clients() -> None:
    url = "http://127.0.0.1:1/token"
    java = 'org.apache.kafka.OAuthBearerLoginModule required clientId="me" clientSecret="s";'
    both = [
        {"kafka.sasl.oauthbearer.client.id": "me", "kafka.sasl.oauthbearer.client.secret": "s"},
        {"kafka.sasl.jaas.config": java},
    ]
    for names in both:
        given = {
            **SASL,
            "kafka.sasl.mechanism": "OAUTHBEARER",
            "kafka.sasl.oauthbearer.token.endpoint.url": url,
            **names,
        }
        oauth = read_security(given).oauth
        assert oauth is not None
        assert (oauth.client_id, oauth.client_secret, oauth.token_endpoint_url) == ("me", "s", url)
        assert '"s"' not in repr(oauth)
    with pytest.raises(InvalidProperty, match=r"kafka\.sasl\.oauthbearer\.token\.endpoint\.url"):
        read_security({**SASL, "kafka.sasl.mechanism": "OAUTHBEARER"})


def test_every_property_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "kafka-security.md").read_text(encoding="utf-8")
    assert [name for name in security.SECURITY_PROPERTIES if f"`{name}`" not in page] == []
