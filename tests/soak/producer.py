"""Produces records at a steady rate: several schema versions, and poison. Every record is acknowledged."""

import io
import json
import threading
import time
from typing import Any

import fastavro
from confluent_kafka import KafkaError, Message, Producer

from headgate.serdes import RegistryClient, avro_schema
from headgate.serdes.client import RegistryClientError
from headgate.serdes.framing import frame

POISON_EACH = 50
PARTITIONS = 3
SLICE_SECONDS = 0.1
RETRY_SECONDS = 1.0
DELIVERY_SECONDS_MAX = 300


def schema_of(version: int) -> dict[str, Any]:
    """Each version adds an optional field."""
    added = [{"name": f"added_{number}", "type": ["null", "long"], "default": None} for number in range(1, version)]
    return {"type": "record", "name": "Event", "fields": [{"name": "id", "type": "long"}, *added]}


class SteadyProducer(threading.Thread):
    """Ids are consecutive. Every fiftieth payload is truncated."""

    def __init__(self, bootstrap_server: str, registry_url: str, topic: str, rate: int) -> None:
        super().__init__(name="soak-producer")
        self._registry_url = registry_url
        self._topic = topic
        self._rate = rate
        # librdkafka repeats a request until it is acknowledged, and the broker removes duplicates.
        settings = {"bootstrap.servers": bootstrap_server, "enable.idempotence": True, "linger.ms": 20}
        self._producer = Producer({**settings, "delivery.timeout.ms": DELIVERY_SECONDS_MAX * 1000})
        self._ended = threading.Event()
        self._schema: Any = None
        self._schema_id = 0
        self.version = 0
        self.sent = 0
        self.acknowledged = 0
        self.failures: list[str] = []
        self.evolve()

    def evolve(self) -> None:
        """Register the next version. The registry may be down for a moment."""
        schema = schema_of(self.version + 1)
        deadline = time.monotonic() + DELIVERY_SECONDS_MAX
        while True:
            try:
                with RegistryClient(self._registry_url) as client:
                    found = client.register(f"{self._topic}-value", avro_schema(json.dumps(schema)))
                break
            except RegistryClientError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_SECONDS)
        assert found.id is not None
        self._schema, self._schema_id = fastavro.parse_schema(schema), found.id
        self.version += 1

    def run(self) -> None:
        started = time.monotonic()
        while not self._ended.wait(SLICE_SECONDS):
            due = int((time.monotonic() - started) * self._rate)
            for number in range(self.sent, due):
                self._send(number)
            self._producer.poll(0)

    def _send(self, number: int) -> None:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self._schema, {"id": number})
        payload = frame(self._schema_id, out.getvalue())
        if number % POISON_EACH == 0:
            payload = payload[:-1]
        self._producer.produce(self._topic, payload, partition=number % PARTITIONS, on_delivery=self._delivered)
        self.sent = number + 1

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.failures.append(str(error))

    def finish(self) -> None:
        """Stop, and wait until every record is acknowledged."""
        self._ended.set()
        self.join()
        left = self._producer.flush(DELIVERY_SECONDS_MAX)
        assert not left, f"{left} records are not acknowledged"
        assert not self.failures, self.failures[:3]
