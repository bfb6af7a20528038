"""The examples of docs/spark.md, run from top to bottom against a live broker and registry."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from headgate.serdes import RegistryClient, Serializer, avro_schema
from tests.documentation import blocks
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.installation import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = ROOT / "docs" / "spark.md"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateBroker]:
    process = HeadgateBroker(tmp_path_factory.mktemp("broker"))
    process.start()
    yield process
    process.stop()


@pytest.fixture
def own_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateRegistry]:
    process = HeadgateRegistry(tmp_path_factory.mktemp("registry"))
    process.start()
    yield process
    process.stop()


def test_the_examples_of_the_guide_run(
    spark: "SparkSession", broker: HeadgateBroker, own_registry: HeadgateRegistry
) -> None:
    names: dict[str, object] = {"__name__": "examples", "spark": spark}
    addresses = {"broker": broker.address, "registry": own_registry.url.removeprefix("http://"), "proxy": "unused"}
    for block in blocks(PAGE):
        block.python(names, addresses)
    assert names["seen"] == {"good": 1000, "poison": 3}


def test_the_spark_block_of_the_readme_runs(
    spark: "SparkSession",
    broker: HeadgateBroker,
    own_registry: HeadgateRegistry,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (block,) = (block for block in blocks(ROOT / "README.md") if block.language == "python")
    schema = avro_schema('{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}')
    with RegistryClient(own_registry.url) as client:
        payload = Serializer(client, schema).serialize({"id": 4}, topic="orders") or b""
    producer = Producer({"bootstrap.servers": broker.address})
    for value in (payload, payload[:5]):
        producer.produce("invoices", value)
    producer.flush()
    addresses = {"broker": broker.address, "registry": own_registry.url.removeprefix("http://"), "proxy": "unused"}
    block.python({"__name__": "examples"}, addresses)
    assert "|  4|     0|" in capsys.readouterr().out
