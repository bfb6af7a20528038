"""Sends kill -9 many times during acks=all produce requests and offset commits.

- Consumers read every acknowledged record exactly once.
- Offsets are consecutive.
- An idempotent producer that retries through the crashes creates no duplicates.
- Acknowledged commits survive.
- A second restart shows the same state.

A client needs a second to reconnect. The kills alternate between two brokers, so that the test does not wait.
"""

import random
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.live.headgate import HeadgateBroker
from tests.rounds import rounds

KILLS = rounds(20, 500)
BROKERS = 2
TOPIC = "killed"
PARTITIONS = 3
SEED = 20261116
PROGRESS_SECONDS_MAX = 60.0


def value_of(number: int) -> bytes:
    """Return a padded value, so that a few thousand records per second fill segments."""
    return f"{number:010}".encode().ljust(300, b".")


class Writer(threading.Thread):
    """Produces numbered values continuously, also across broker kills. Records each acknowledgement."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 1,
                "message.timeout.ms": 300_000,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 50,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 50,
                "log_level": 0,
            }
        )
        self.acknowledged: dict[int, tuple[int, int]] = {}
        self.failures: list[str] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        number = 0
        while not self.stopping.is_set():
            for _ in range(20):
                self._producer.produce(TOPIC, value_of(number), partition=number % PARTITIONS, on_delivery=self._done)
                number += 1
            self._producer.poll(0)
            while len(self._producer) > 2000 and not self.stopping.is_set():
                self._producer.poll(0.01)
            time.sleep(0.01)
        if self._producer.flush(60):
            self.failures.append("records were still waiting after a minute")

    def wait_until_more_is_acknowledged(self) -> None:
        """Wait for progress. A client needs a second to reconnect, and the next kill must hit an active client."""
        before, deadline = len(self.acknowledged), time.monotonic() + PROGRESS_SECONDS_MAX
        while len(self.acknowledged) == before and not self.failures:
            assert time.monotonic() < deadline, "nothing is acknowledged any more"
            time.sleep(0.002)

    def _done(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        value, offset, partition = message.value(), message.offset(), message.partition()
        assert isinstance(value, bytes)
        assert offset is not None
        assert partition is not None
        self.acknowledged[int(value[:10])] = (partition, offset)


class Committer(threading.Thread):
    """Commits increasing offsets and records the last acknowledged offset."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "committer",
                "enable.auto.commit": False,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 50,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 50,
                "log_level": 0,
            }
        )
        self.acknowledged = 0
        self.stopping = threading.Event()

    def run(self) -> None:
        offset = 0
        while not self.stopping.is_set():
            offset += 1
            try:
                self._consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
            except KafkaException:
                time.sleep(0.02)
                continue
            self.acknowledged = offset
            time.sleep(0.01)
        self._consumer.close()


def read_all(address: str) -> dict[int, list[tuple[int, bytes]]]:
    """Return (offset, value) of every record, by partition."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "enable.auto.commit": False})
    found: dict[int, list[tuple[int, bytes]]] = {partition: [] for partition in range(PARTITIONS)}
    ends = {}
    for partition in range(PARTITIONS):
        _, ends[partition] = consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=10)
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    deadline = time.monotonic() + 60
    while sum(map(len, found.values())) < sum(ends.values()):
        assert time.monotonic() < deadline, "the log could not be read to its end"
        for message in consumer.consume(5000, 0.5):
            assert message.error() is None, message.error()
            number, offset, value = message.partition(), message.offset(), message.value()
            assert number is not None
            assert offset is not None
            assert isinstance(value, bytes)
            found[number].append((offset, value))
    consumer.close()
    return found


def committed(address: str) -> int:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "committer"})
    (answer,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=10)
    consumer.close()
    assert answer.error is None
    return answer.offset


class Target:
    """A broker to kill, with a producer and a consumer that commits. Both run continuously."""

    def __init__(self, folder: Path) -> None:
        # Small segments, so that some kills happen during a segment roll.
        self.broker = HeadgateBroker(folder, {"num.partitions": str(PARTITIONS), "log.segment.bytes": "1048576"})
        self.broker.start()
        self.writer, self.committer = Writer(self.broker.address), Committer(self.broker.address)
        self.writer.start()
        self.committer.start()

    def stop_clients(self) -> None:
        self.writer.stopping.set()
        self.committer.stopping.set()
        self.writer.join(90)
        self.committer.join(30)

    def check(self) -> None:
        writer, committer, broker = self.writer, self.committer, self.broker
        assert not writer.failures
        broker.kill()
        broker.start()
        first = read_all(broker.address)
        for partition, rows in first.items():
            offsets = [offset for offset, _ in rows]
            assert offsets == list(range(len(rows))), f"offsets of partition {partition} have gaps"
            values = [value for _, value in rows]
            assert len(set(values)) == len(values), f"partition {partition} holds duplicates"
        for number, (partition, offset) in writer.acknowledged.items():
            assert first[partition][offset] == (offset, value_of(number))
        assert committed(broker.address) >= committer.acknowledged
        assert committer.acknowledged > 10, "too little was committed for the kills to matter"
        assert broker.stop() == 0
        broker.start()
        assert read_all(broker.address) == first
        assert committed(broker.address) >= committer.acknowledged
        broker.stop()


def test_nothing_acknowledged_is_lost_or_doubled_by_kills(tmp_path: Path) -> None:
    randomness = random.Random(SEED)
    targets = [Target(tmp_path / str(number)) for number in range(BROKERS)]
    try:
        for kill in range(KILLS):
            target = targets[kill % BROKERS]
            target.writer.wait_until_more_is_acknowledged()
            time.sleep(randomness.uniform(0, 0.1))
            target.broker.kill()
            target.broker.start()
        for target in targets:
            target.writer.wait_until_more_is_acknowledged()
    finally:
        for target in targets:
            target.stop_clients()
    for target in targets:
        records, commits = len(target.writer.acknowledged), target.committer.acknowledged
        print(f"{records} records and {commits} commits acknowledged by {target.broker.address}")
        target.check()
