"""Brokers that ask who is there: Apache Kafka with PLAIN and SCRAM."""

from collections.abc import Iterator

import pytest
from pyarrow import lib as pa

from headgate.spark_udfs.source.errors import BrokerUnreachable, NotAuthenticated
from headgate.spark_udfs.source.options import write_options
from headgate.spark_udfs.source.writing import write_batches
from tests.live.apache_kafka import SHORT_LIVED, KafkaNode
from tests.spark.source.topics import Topics, numbered, read

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

USER, PASSWORD = "reader", "open sesame"
LISTENER = "listener.name.sasl_plaintext"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.fixture(scope="module")
def guarded(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topics]:
    scram = [f"{mechanism}=[name={USER},password={PASSWORD}]" for mechanism in MECHANISMS[1:]]
    node = KafkaNode(
        tmp_path_factory.mktemp("sasl"),
        flags=SHORT_LIVED,
        format_arguments=[word for one in scram for word in ("--add-scram", one)],
    )
    node._settings |= {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{node.port},CONTROLLER://127.0.0.1:{node.controller_port}",
        "advertised.listeners": f"SASL_PLAINTEXT://127.0.0.1:{node.port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        f"{LISTENER}.plain.sasl.jaas.config": (
            f'{PLAIN} username="admin" password="x" user_admin="x" user_{USER}="{PASSWORD}";'
        ),
        f"{LISTENER}.scram-sha-256.sasl.jaas.config": f"{SCRAM};",
        f"{LISTENER}.scram-sha-512.sasl.jaas.config": f"{SCRAM};",
    }
    node.start()
    settings = {"sasl.mechanism": "PLAIN", "sasl.username": USER, "sasl.password": PASSWORD}
    yield Topics(node.address, {"security.protocol": "SASL_PLAINTEXT", **settings})
    node.stop()


def named(mechanism: str, password: str = PASSWORD) -> dict[str, str]:
    return {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.username": USER,
        "kafka.sasl.password": password,
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_user_who_is_known_reads_and_writes(guarded: Topics, mechanism: str) -> None:
    topic = guarded.create(2)
    guarded.produce(topic, numbered(3))
    assert len(read(guarded.source(topic, **named(mechanism)))) == 3
    options = write_options({"bootstrap.servers": guarded.address, "topic": topic, **named(mechanism)})
    rows = pa.RecordBatch.from_arrays([pa.array(["a", "b"])], names=["value"])
    assert write_batches(options, [rows]).records == 2
    assert len(read(guarded.source(topic, **named(mechanism)))) == 5


def test_javas_way_to_name_a_user_works_too(guarded: Topics) -> None:
    topic = guarded.create()
    given = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": f'{SCRAM} username="{USER}" password="{PASSWORD}";',
    }
    assert read(guarded.source(topic, **given)) == []


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_called_that(guarded: Topics, mechanism: str) -> None:
    with pytest.raises(NotAuthenticated) as failed:
        read(guarded.source("orders", **named(mechanism, "wrong")))
    text = str(failed.value)
    assert guarded.address in text
    assert USER in text
    assert "kafka.sasl.password" in text
    assert "wrong" not in text
    options = write_options({"bootstrap.servers": guarded.address, "topic": "t", **named(mechanism, "wrong")})
    with pytest.raises(NotAuthenticated):
        write_batches(options, [])


def test_a_client_that_says_nothing_is_told_about_the_protocol(guarded: Topics) -> None:
    with pytest.raises(BrokerUnreachable, match=r"requires SASL.*Set kafka\.security\.protocol to SASL_PLAINTEXT"):
        read(guarded.source("orders"))
