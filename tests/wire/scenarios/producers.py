"""InitProducerId, idempotent Produce and DescribeProducers."""

from typing import Any

from tests.wire.entities import Plain
from tests.wire.record_batches import Batch, NewRecord
from tests.wire.transcript import Wire, fetch_body, produce_body


def init_producer_id_at_every_version(wire: Wire) -> None:
    for version in range(6):
        body = {"transactional_id": None, "transaction_timeout": 60_000}
        wire.ask("init_producer_id", version, body, settled=_has_ids)
        wire.ask("init_producer_id", version, body, label="a new id each time")
    wire.ask("init_producer_id", 4, {"transactional_id": "", "transaction_timeout": 60_000}, label="empty id")
    body = {"transactional_id": None, "transaction_timeout": 0}
    wire.ask("init_producer_id", 4, body, label="no transaction, so no timeout to check")
    body = {"transactional_id": None, "transaction_timeout": 60_000, "producer_id": 5_000_000, "producer_epoch": 0}
    wire.ask("init_producer_id", 4, body, label="with an id of its own but no transaction")


def _has_ids(answer: Plain) -> bool:
    """Wait for producer ids: a new Kafka first fetches a block of ids from the controller."""
    return bool(answer["error_code"] != "COORDINATOR_LOAD_IN_PROGRESS")


class Producer:
    """Sends batches with a producer id and records each response."""

    def __init__(self, wire: Wire, topic: str) -> None:
        body = {"transactional_id": None, "transaction_timeout": 60_000}
        answer = wire.until("init_producer_id", 4, body, _has_ids)
        wire.learn_from(answer)
        self.wire = wire
        self.topic = topic
        self.producer_id: int = answer["producer_id"]
        self.epoch: int = answer["producer_epoch"]

    def batch(self, sequence: int, count: int = 1, **more: Any) -> Batch:
        records = [NewRecord(f"{sequence + i}".encode()) for i in range(count)]
        fields = {"producer_id": self.producer_id, "producer_epoch": self.epoch, "base_sequence": sequence, **more}
        return Batch(records, **fields)

    def send(self, label: str, *batches: Batch, partition: int = 0, version: int = 9) -> Plain:
        body = produce_body(self.topic, *batches, partition=partition)
        answer = self.wire.main.ask("produce", version, body)
        # The producer id in the batch is random, so the golden file identifies the request by its label.
        self.wire.note("produce", version, {}, answer, label)
        return answer


def sequences(wire: Wire) -> None:
    producer = Producer(wire, wire.topic("idempotent", 2))
    producer.send("starts above 0", producer.batch(5), partition=1)
    producer.send("sequence 0", producer.batch(0))
    producer.send("sequence 0 again", producer.batch(0))
    producer.send("sequence 1", producer.batch(1))
    producer.send("sequence 3, a gap", producer.batch(3))
    producer.send("sequence 2", producer.batch(2))
    for sequence in range(3, 9):
        producer.send(f"sequence {sequence}", producer.batch(sequence))
    for sequence in range(9):
        producer.send(f"sequence {sequence} again", producer.batch(sequence))
    producer.send("sequences 9 to 11", producer.batch(9, 3))
    producer.send("sequences 9 to 11 again", producer.batch(9, 3))
    producer.send("sequences 9 to 10, part of a batch", producer.batch(9, 2))
    producer.send("sequence 12", producer.batch(12))
    producer.send("a negative sequence", producer.batch(-1))
    wire.ask("fetch", 11, fetch_body(producer.topic, 0), label="what was kept", keep=_values)


def _values(answer: Plain) -> Any:
    part = answer["responses"][0]["partitions"][0]
    return {
        "records": [[record["offset"], record["value"]] for batch in part["records"] for record in batch["records"]]
    }


def no_epoch(wire: Wire) -> None:
    producer = Producer(wire, wire.topic("no-epoch"))
    producer.send("without an epoch", producer.batch(5, producer_epoch=-1))
    producer.send("without an epoch again", producer.batch(5, producer_epoch=-1))
    producer.send("without an epoch, a gap", producer.batch(7, producer_epoch=-1))
    producer.send("its first epoch begins with any sequence", producer.batch(9))
    producer.send("without an epoch once more", producer.batch(6, producer_epoch=-1))
    producer.send("the next epoch does not", producer.batch(3, producer_epoch=1))


def epochs(wire: Wire) -> None:
    producer = Producer(wire, wire.topic("epochs"))
    producer.send("epoch 0", producer.batch(0))
    producer.epoch = 2
    producer.send("epoch 2, not from sequence 0", producer.batch(7))
    producer.send("epoch 2, from sequence 0", producer.batch(0))
    producer.epoch = 1
    producer.send("epoch 1, older", producer.batch(0))
    producer.epoch = 2
    producer.send("epoch 2, sequence 0 again", producer.batch(0))
    producer.send("epoch 2, sequence 1", producer.batch(1))
    producer.epoch = -1
    producer.send("an id without an epoch", producer.batch(2))


def sequences_wrap_around(wire: Wire) -> None:
    producer = Producer(wire, wire.topic("wrapping"))
    producer.send("up to the largest sequence", producer.batch(0, 1))
    last = 2**31 - 1
    producer.send("far ahead", producer.batch(last))
    producer.send(
        "an id nobody was given", Batch([NewRecord(b"x")], producer_id=2**40, producer_epoch=0, base_sequence=0)
    )
    producer.send("the same again", Batch([NewRecord(b"x")], producer_id=2**40, producer_epoch=0, base_sequence=0))


def two_batches_in_one_request(wire: Wire) -> None:
    producer = Producer(wire, wire.topic("pairs"))
    producer.send("two idempotent batches at once", producer.batch(0), producer.batch(1))
    producer.send("one", producer.batch(0))
    plain = Batch([NewRecord(b"plain")])
    producer.send("an idempotent one and a plain one at once", producer.batch(1), plain)


def describe_producers(wire: Wire) -> None:
    producer = Producer(wire, wire.topic("described", 2))
    producer.send("sequences 0 to 2", producer.batch(0, 3))

    def ask(label: str, topic: str, *partitions: int) -> None:
        body = {"topics": [{"name": topic, "partition_indexes": list(partitions)}]}
        wire.ask("describe_producers", 0, body, label=label, keep=_blank_time)

    ask("one producer and none", producer.topic, 0, 1)
    ask("unknown partition", producer.topic, 9)
    ask("unknown topic", wire.name("absent"), 0)
    ask("invalid name", "bad name", 0)


def _blank_time(answer: Plain) -> Plain:
    return answer


def init_producer_id_of_who_names_one(wire: Wire) -> None:
    wire.until("init_producer_id", 4, {"transactional_id": None, "transaction_timeout": 60_000}, _has_ids)

    def shape(answer: Plain) -> Plain:
        return {**answer, "producer_id": "an id" if answer["producer_id"] >= 0 else "none"}

    for version in (3, 4, 5):
        for producer, epoch in ((-1, -1), (5, -1), (-1, 5), (5, 3), (0, 0), (1, 32_767), (-2, -1), (-1, -2), (-5, -5)):
            body = {"transaction_timeout": 60_000, "producer_id": producer, "producer_epoch": epoch}
            wire.ask("init_producer_id", version, body, label=f"id {producer}, epoch {epoch}", keep=shape)
