"""The data source against Apache Kafka with TLS and SASL."""

from pathlib import Path

import pytest
from pyarrow import lib as pa

from headgate.spark_udfs.source.errors import BrokerUnreachable, NotAuthenticated
from headgate.spark_udfs.source.options import write_options
from headgate.spark_udfs.source.writing import write_batches
from tests.live.certificates import authority
from tests.live.secured_kafka import MECHANISMS, PASSWORD, SCRAM_MODULE, USER, SecuredKafka, unsecured_token
from tests.spark.source.topics import Topics, numbered, read

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

LISTENERS = [("SSL", ""), *(("SASL_SSL", mechanism) for mechanism in MECHANISMS)]


def topics(secured: SecuredKafka, protocol: str) -> Topics:
    return Topics(secured.address(protocol), secured.properties(protocol))


def options(secured: SecuredKafka, protocol: str, mechanism: str = "PLAIN", password: str = PASSWORD) -> dict[str, str]:
    given = secured.properties(protocol, mechanism, password)
    return {f"kafka.{name}": value for name, value in given.items()}


@pytest.mark.parametrize(("protocol", "mechanism"), LISTENERS)
def test_an_authenticated_client_reads_and_writes(secured_kafka: SecuredKafka, protocol: str, mechanism: str) -> None:
    there, given = topics(secured_kafka, protocol), options(secured_kafka, protocol, mechanism)
    topic = there.create(2)
    there.produce(topic, numbered(3))
    assert len(read(there.source(topic, **given))) == 3
    rows = pa.RecordBatch.from_arrays([pa.array(["a", "b"])], names=["value"])
    to = write_options({"bootstrap.servers": there.address, "topic": topic, **given})
    assert write_batches(to, [rows]).records == 2
    assert len(read(there.source(topic, **given))) == 5


def test_the_names_of_the_java_client_work_too(secured_kafka: SecuredKafka) -> None:
    topic = topics(secured_kafka, "SSL").create()
    stores = {
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(secured_kafka.ca_file),
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.location": str(secured_kafka.client_file),
    }
    assert read(topics(secured_kafka, "SSL").source(topic, **{"kafka.security.protocol": "SSL", **stores})) == []
    jaas = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": f'{SCRAM_MODULE} username="{USER}" password="{PASSWORD}";',
    }
    assert read(topics(secured_kafka, "SASL_PLAINTEXT").source(topic, **jaas)) == []


def test_a_client_authenticates_with_an_oauth_token(secured_kafka: SecuredKafka) -> None:
    there = topics(secured_kafka, "SASL_PLAINTEXT")
    given = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "kafka.sasl.oauthbearer.token": unsecured_token("robot"),
    }
    assert read(there.source(there.create(), **given)) == []
    with pytest.raises(NotAuthenticated, match=r"Check the kafka\.sasl\.oauthbearer properties"):
        read(there.source("orders", **{**given, "kafka.sasl.oauthbearer.token": unsecured_token("robot", -60)}))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_reported(secured_kafka: SecuredKafka, mechanism: str) -> None:
    there, given = topics(secured_kafka, "SASL_SSL"), options(secured_kafka, "SASL_SSL", mechanism, "wrong")
    with pytest.raises(NotAuthenticated) as failed:
        read(there.source("orders", **given))
    text = str(failed.value)
    assert there.address in text
    assert USER in text
    assert "kafka.sasl.password" in text
    assert "wrong" not in text
    with pytest.raises(NotAuthenticated):
        write_batches(write_options({"bootstrap.servers": there.address, "topic": "t", **given}), [])


def test_the_certificate_of_the_broker_is_verified(secured_kafka: SecuredKafka, tmp_path: Path) -> None:
    there, given = topics(secured_kafka, "SSL"), options(secured_kafka, "SSL")
    stranger = authority(tmp_path, "stranger").certificate()
    with pytest.raises(NotAuthenticated, match=rf"at {there.address} failed.*Set kafka\.ssl\.ca\.location"):
        read(there.source("orders", **{**given, "kafka.ssl.ca.location": str(stranger)}))
    # The certificate contains only 127.0.0.1.
    port = there.address.rpartition(":")[2]
    by_name = {**given, "bootstrap.servers": f"localhost:{port}"}
    with pytest.raises(NotAuthenticated, match=f"at localhost:{port} failed.*Use a host name that the certificate"):
        read(there.source("orders", **by_name))
    unchecked = {**by_name, "kafka.ssl.endpoint.identification.algorithm": "none"}
    assert read(there.source(there.create(), **unchecked)) == []


def test_a_client_without_a_certificate_gets_a_clear_error(secured_kafka: SecuredKafka) -> None:
    there, given = topics(secured_kafka, "SSL"), options(secured_kafka, "SSL")
    nobody = {name: value for name, value in given.items() if "certificate" not in name and "key" not in name}
    with pytest.raises(BrokerUnreachable, match=rf"{there.address}.*kafka\.ssl\.certificate\.location"):
        read(there.source("orders", **nobody))


def test_a_client_without_sasl_gets_a_clear_error(secured_kafka: SecuredKafka) -> None:
    there = topics(secured_kafka, "SASL_PLAINTEXT")
    with pytest.raises(BrokerUnreachable, match=r"requires SASL.*Set kafka\.security\.protocol to SASL_PLAINTEXT"):
        read(there.source("orders"))
