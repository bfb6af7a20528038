"""Checks of a produced batch that depend only on its bytes and on the topic's settings.

The event loop verifies small batches. A thread verifies large batches.
"""

from typing import NamedTuple

from kio.schema.errors import ErrorCode

from headgate.broker.log.topic_settings import TopicSettings
from headgate.broker.node.error_codes import code_of, refusal_of
from headgate.broker.protocol.outcomes import Refusal
from headgate.broker.protocol.produced_batch import UnsupportedCodec, validate_produced
from headgate.broker.requests.record_rules import check_records
from headgate.wire.buffer import Buffer
from headgate.wire.errors import CorruptBatch, InvalidBatch
from headgate.wire.record_batch import TRANSACTIONAL_FLAG, BatchHeader

ZSTD_SINCE_VERSION = 7


class Verified(NamedTuple):
    """A batch that may be appended to a topic with these settings."""

    settings: TopicSettings
    batch: Buffer
    header: BatchHeader


def verify(
    batch: Buffer | None, version: int, settings: TopicSettings, partition: str, now_ms: int, inline_records: int | None
) -> Verified:
    """Verify a batch. Raises Refusal. Raises TooLargeInline in the same cases as `check_records`."""
    try:
        batch, header = validate_produced(batch or b"", takes_zstd=version >= ZSTD_SINCE_VERSION)
    except UnsupportedCodec as error:
        raise Refusal(code_of(error), f"Produce v{version}: {error}") from error
    except (CorruptBatch, InvalidBatch) as error:
        raise refusal_of(error) from error
    if header.attributes & TRANSACTIONAL_FLAG:
        raise Refusal(ErrorCode.transactional_id_authorization_failed, "this broker has no transactions yet")
    if len(batch) > settings.max_message_bytes:
        raise Refusal(
            ErrorCode.message_too_large, f"a batch of {len(batch)} bytes is over {settings.max_message_bytes}"
        )
    check_records(batch, header, settings, partition, now_ms, inline_records)
    return Verified(settings, batch, header)


class LargeBatch(NamedTuple):
    """A batch that a thread must verify."""

    key: tuple[int, int]
    """The position of its topic in the request, and its partition."""
    version: int
    settings: TopicSettings
    partition: str
    now_ms: int
    batch: bytes

    def verify(self) -> Verified | Refusal:
        try:
            return verify(self.batch, self.version, self.settings, self.partition, self.now_ms, None)
        except Refusal as refusal:
            return refusal.without_traceback()
