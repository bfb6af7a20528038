"""A topic with decoded keys and two record types (TopicRecordName strategy), with poison."""

from typing import Any

from tests.live.headgate_registry import HeadgateRegistry
from tests.spark.functions.payloads import encoded, register
from tests.spark.source.topics import Message, Topics

KEY: dict[str, Any] = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
ORDER: dict[str, Any] = {"type": "record", "name": "shop.Order", "fields": [{"name": "total", "type": "int"}]}
REFUND: dict[str, Any] = {"type": "record", "name": "shop.Refund", "fields": [{"name": "why", "type": "string"}]}


class Shop:
    """One topic with decoded keys, and payloads for it."""

    def __init__(self, topics: Topics, registry: HeadgateRegistry) -> None:
        self.topics = topics
        self.topic = topics.create()
        (self.key_id,) = register(registry, f"{self.topic}-key", KEY)
        (self.order_id,) = register(registry, f"{self.topic}-shop.Order", ORDER)
        (self.refund_id,) = register(registry, f"{self.topic}-shop.Refund", REFUND)
        self.order_subject, self.refund_subject = f"{self.topic}-shop.Order", f"{self.topic}-shop.Refund"
        self.options = {
            "bootstrap.servers": topics.address,
            "registry.url": registry.url,
            "key.subject": f"{self.topic}-key",
        }

    def key(self, number: int) -> bytes:
        return encoded(KEY, {"id": number}, self.key_id)

    def order(self, total: int) -> bytes:
        return encoded(ORDER, {"total": total}, self.order_id)

    def refund(self, why: str) -> bytes:
        return encoded(REFUND, {"why": why}, self.refund_id)

    def fill(self) -> None:
        """Two good orders (one without a key), a refund, a bad key, a bad value, both, and a tombstone."""
        rows = [
            Message(self.key(1), self.order(10)),
            Message(None, self.order(20)),
            Message(self.key(3), self.refund("late")),
            Message(b"no key", self.order(40)),
            Message(self.key(5), b"no value", [("trace", b"x")]),
            Message(b"no key", b"no value"),
            Message(self.key(7), None),
        ]
        self.topics.produce(self.topic, rows)
