"""Steps of scenarios that produce a batch and read it back."""

from typing import Any

from tests.wire.entities import Plain
from tests.wire.record_batches import Batch
from tests.wire.transcript import Wire, fetch_body, produce_body

LOG_APPEND_TIME = 8


def produce_step(wire: Wire, topic: str, *batches: Batch | bytes, label: str, version: int = 9, **more: Any) -> Plain:
    return wire.ask("produce", version, produce_body(topic, *batches, **more), label=label)


def read_step(wire: Wire, topic: str, offset: int = 0, label: str = "read back") -> None:
    wire.ask("fetch", 11, fetch_body(topic, offset), label=label, keep=_records_only)


def _records_only(answer: Plain) -> Any:
    return [part["records"] for topic in answer["responses"] for part in topic["partitions"]]
