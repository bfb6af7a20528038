"""Topics with a few batches, and the part of a fetch response that shows where a log begins and ends."""

from typing import Any

from tests.wire.entities import Plain
from tests.wire.record_batches import Batch, NewRecord
from tests.wire.transcript import Wire

T0 = 1_700_000_000_000


def filled(wire: Wire, part: str, batches: int = 3, records: int = 4) -> str:
    topic = wire.topic(part)
    for i in range(batches):
        first = i * records
        made = [NewRecord(f"v{first + j}".encode(), timestamp=T0 + 1000 * (first + j)) for j in range(records)]
        wire.produce(topic, Batch(made))
    return topic


def bounds_of(answer: Plain) -> Any:
    part = answer["responses"][0]["partitions"][0]
    batches = part["records"] or []
    return {
        "error_code": part["error_code"],
        "high_watermark": part["high_watermark"],
        "log_start_offset": part["log_start_offset"],
        "batches": [[batch["base_offset"], batch["last_offset_delta"]] for batch in batches],
    }
