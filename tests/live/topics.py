"""Creates and fills topics with librdkafka, fast enough for a million records."""

import time
from collections.abc import Iterable, Sequence

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

DELIVERY_SECONDS_MAX = 120
WAITING_MAX = 100_000
"""Records in the producer's queue before it is asked to send on."""


def create_topic(address: str, topic: str, partitions: int = 1, replicas: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    for made in admin.create_topics([NewTopic(topic, partitions, replicas)]).values():
        made.result(30)
    # Kafka responds before the partitions have a leader.
    deadline = time.monotonic() + 30
    while len(admin.list_topics(topic, timeout=10).topics[topic].partitions) < partitions:
        assert time.monotonic() < deadline, f"{topic} did not come up"
        time.sleep(0.05)


def produce(
    address: str,
    topic: str,
    values: Sequence[bytes | None],
    *,
    partitions: int = 1,
    keys: Sequence[bytes | None] | None = None,
    headers: Sequence[list[tuple[str, str | bytes | None]]] | None = None,
) -> None:
    """Produce records round robin to the partitions and wait for all acknowledgements."""
    producer = Producer(
        {"bootstrap.servers": address, "acks": "all", "linger.ms": 20, "queue.buffering.max.messages": 2 * WAITING_MAX}
    )
    failures: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(str(error))

    for number, value in enumerate(values):
        producer.produce(
            topic,
            value,
            keys[number] if keys is not None else None,
            number % partitions,
            on_delivery=delivered,
            headers=headers[number] if headers is not None else [],
        )
        if number % 1000 == 0:
            producer.poll(0)
            while len(producer) > WAITING_MAX:
                producer.poll(0.01)
    left = producer.flush(DELIVERY_SECONDS_MAX)
    assert not left, f"{left} records were not delivered"
    assert not failures, failures[:3]


def in_turn(values: Iterable[bytes], partitions: int) -> list[tuple[int, int, bytes]]:
    """Return (partition, offset, value) of each value after `produce` to an empty topic."""
    return [(number % partitions, number // partitions, value) for number, value in enumerate(values)]
