import asyncio
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.clients.cli.conftest import Cli
from tests.clients.cli.launcher import Launcher

pytestmark = pytest.mark.kafka

aiokafka: Any = import_module("aiokafka")
confluent_kafka: Any = import_module("confluent_kafka")


def test_every_noun_works_against_apache_kafka(apache_kafka: str, launcher: Launcher, tmp_path: Path) -> None:
    cli = Cli(apache_kafka, tmp_path, launcher)
    cli("topic", "create", "cli-smoke", "-p", "2", "-c", "retention.ms=60000000000")
    cli("topic", "alter", "cli-smoke", "-p", "3", "-c", "max.message.bytes=1000000")
    described = json.loads(cli("topic", "describe", "cli-smoke", "--json").out)
    assert len(described["partitions"]) == 3
    assert {each["name"]: each["value"] for each in described["configs"]} == {
        "retention.ms": "60000000000",
        "max.message.bytes": "1000000",
    }
    assert "cli-smoke" in [row[0] for row in cli("topic", "list").rows]

    cli("produce", "cli-smoke", "-p", "1", "-K", ":", stdin=b"k:one\nk:two\nk:three\n")
    cli("produce", "cli-smoke", "-J", stdin=b'{"key": null, "value": null, "partition": 1}\n')
    assert cli("consume", "cli-smoke", "-e", "-k", "-K", "=").lines == ["k=one", "k=two", "k=three", "NULL=NULL"]

    assert cli("consume", "cli-smoke", "-g", "cli-smoke-group", "-n", "2").lines == ["one", "two"]
    lag = {
        each["partition"]: each["lag"]
        for each in json.loads(cli("group", "describe", "cli-smoke-group", "--json").out)["partitions"]
    }
    assert lag[1] == 2
    dry = cli("group", "reset", "cli-smoke-group", "-t", "cli-smoke:1", "--to-earliest")
    assert dry.rows == [["cli-smoke", "1", "2", "0", "4"]]
    cli("group", "reset", "cli-smoke-group", "-t", "cli-smoke:1", "--to-earliest", "--execute")
    assert cli("consume", "cli-smoke", "-g", "cli-smoke-group", "-e").lines == ["one", "two", "three", "NULL"]
    assert "cli-smoke-group" in [row[0] for row in cli("group", "list").rows]

    cli("group", "delete", "cli-smoke-group", "-y")
    cli("topic", "delete", "cli-smoke", "-y")
    cli("topic", "describe", "cli-smoke", code=3)
    cli("consume", "cli-smoke", "-e", code=3)


async def _transactions(address: str, topic: str) -> Any:
    """Write a committed, an aborted and an open transaction. Returns the producer of the open one."""
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=address, transactional_id=f"{topic}-writer")
    await producer.start()
    for value, ending in (
        (b"committed", producer.commit_transaction),
        (b"aborted", producer.abort_transaction),
        (b"open", None),
    ):
        await producer.begin_transaction()
        await producer.send_and_wait(topic, value)
        if ending is not None:
            await ending()
    return producer


def test_reading_to_the_end_passes_the_marks_of_transactions(
    apache_kafka: str, launcher: Launcher, tmp_path: Path
) -> None:
    cli = Cli(apache_kafka, tmp_path, launcher)
    cli("topic", "create", "cli-transactions", "-p", "1")

    async def write_and_read() -> list[list[str]]:
        producer = await _transactions(apache_kafka, "cli-transactions")
        try:
            return [
                cli("consume", "cli-transactions", "-e", *options).lines
                for options in ((), ("--read-committed",), ("-g", "cli-transactions"))
            ]
        finally:
            await producer.abort_transaction()
            await producer.stop()

    everything = ["committed", "aborted", "open"]
    assert asyncio.run(write_and_read()) == [everything, ["committed"], everything]
    # The log now ends with a control record, which consumers do not receive.
    assert cli("consume", "cli-transactions", "-e").lines == everything
    assert cli("consume", "cli-transactions", "-e", "--read-committed").lines == ["committed"]
    assert cli("consume", "cli-transactions", "-e", "-g", "cli-transactions").lines == []


def test_a_group_of_the_consumer_protocol_is_described_like_any_other(
    apache_kafka: str, launcher: Launcher, tmp_path: Path
) -> None:
    cli = Cli(apache_kafka, tmp_path, launcher)
    cli("topic", "create", "cli-848", "-p", "1")
    cli("produce", "cli-848", stdin=b"a\nb\n")
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": apache_kafka,
            "group.id": "cli-848-group",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "client.id": "reader",
        }
    )
    try:
        consumer.subscribe(["cli-848"])
        message = consumer.poll(30)
        assert message is not None
        consumer.commit(message, asynchronous=False)
        described = json.loads(cli("group", "describe", "cli-848-group", "--json").out)
        refused = cli("group", "reset", "cli-848-group", "--to-earliest", "--execute", code=1)
    finally:
        consumer.close()
    assert (described["state"], described["lag"]) == ("Stable", 1)
    assert described["members"][0]["client_id"] == "reader"
    assert described["members"][0]["partitions"] == [{"topic": "cli-848", "partition": 0}]
    assert "in use" in refused.err
    assert ["cli-848-group", "Empty", "consumer"] in [
        [*row[:2], row[2].lower()] for row in cli("group", "list", "--state", "empty").rows
    ]
    cli("group", "reset", "cli-848-group", "--to-earliest", "--execute")
    assert json.loads(cli("group", "describe", "cli-848-group", "--json").out)["lag"] == 2
