"""Options of a producer."""

from dataclasses import dataclass
from typing import Final

ACKS_ALL: Final = -1
COMPRESSION_CODECS: Final = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    batch_bytes_max: int = 1_000_000
    """A batch is closed at this size. One record may be larger."""
    record_bytes_max: int = 1_000_000
    pending_bytes_max: int = 64 * 1024 * 1024
    """Size of the unacknowledged records. At the limit, `place` raises BufferFull."""
    delivery_timeout_ms: int = 120_000
    """Time from the first record of a batch to its acknowledgement, including all attempts."""
    close_timeout_ms: int = 10_000
    """How long `close` waits for acknowledgements."""
    acks: int = ACKS_ALL
    """-1 (all) makes the producer idempotent. With 1 or 0, a retry can write records twice."""
    compression: str = "none"
    auto_create_topics: bool = True
    """Whether a produce to a missing topic requests its creation. `auto.create.topics.enable` of the broker decides."""

    @property
    def is_idempotent(self) -> bool:
        return self.acks == ACKS_ALL
