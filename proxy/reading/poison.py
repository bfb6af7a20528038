"""Poison policy: undecodable records become rows, are skipped, fail the read, or go to a dead-letter topic.

`proxy.reading.payloads` detects undecodable records.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, cast

from headgate.kafka_client.producer.records import OutgoingRecord
from headgate.proxy.errors import BadRequest, ConversionFailed
from headgate.proxy.producers.internal_topics import check_writable
from headgate.proxy.producers.sender import Sender
from headgate.proxy.reading.payloads import KafkaRecord
from headgate.proxy.reading.rows import PoisonRow, Rows
from headgate.proxy.settings import ProxySettings
from headgate.serdes import Record as LetterRecord
from headgate.serdes import to_dead_letter
from headgate.serdes.dead_letter import TOPIC_SUFFIX

APPLICATION: Final = "headgate-proxy"


class OnPoison(StrEnum):
    ROW = "row"
    SKIP = "skip"
    FAIL = "fail"
    DEAD_LETTER = "dead_letter"


@dataclass(frozen=True, slots=True)
class PoisonPolicy:
    action: OnPoison = OnPoison.ROW
    dead_letter_topic: str | None = None
    """None selects the topic of the records with the suffix."""
    suffix: str = TOPIC_SUFFIX

    @classmethod
    def read(
        cls, action: str | None, topic: str | None, settings: ProxySettings, *, may_write: bool = True
    ) -> "PoisonPolicy":
        """`may_write`: whether the request may write dead letters. Raises BadRequest, NotAuthorized."""
        if topic:
            check_writable(topic, settings)
        if action is not None and action not in set(OnPoison):
            raise BadRequest(f"on_poison must be one of {', '.join(OnPoison)}, not {action[:40]!r}.")
        if action == OnPoison.DEAD_LETTER and not may_write:
            raise BadRequest(
                "on_poison=dead_letter writes records, and this request only reads. Send it as POST to …/records:read, "
                "or read with a consumer group."
            )
        return cls(
            OnPoison.ROW if action is None else OnPoison(action), topic or None, settings.dead_letter_topic_suffix
        )


@dataclass(frozen=True, slots=True)
class Disposed:
    rows: list[bytes]
    offsets: list[int]
    consumed: int
    """Number of consumed records, from the first one. With `fail`, the number of records before the poison."""
    failure: ConversionFailed | None = None


Where = Callable[[KafkaRecord], tuple[str, int]]
"""Returns the topic and partition of a record."""


async def dispose(sender: Sender, policy: PoisonPolicy, made: Rows, where: Where) -> Disposed:
    """Applies the policy to the rows. Raises ProxyError if dead letters cannot be written: no record is consumed."""
    if PoisonRow not in set(map(type, made.rows)):
        return Disposed(cast(list[bytes], made.rows), made.offsets, len(made.rows))
    rows: list[bytes] = []
    offsets: list[int] = []
    letters: list[PoisonRow] = []
    for index, (row, offset) in enumerate(zip(made.rows, made.offsets, strict=True)):
        if isinstance(row, bytes):
            rows.append(row)
        elif policy.action is OnPoison.ROW:
            rows.append(row.row)
        elif policy.action is OnPoison.FAIL:
            return Disposed(rows, offsets, index, poison_error(*where(row.record), row))
        else:
            if policy.action is OnPoison.DEAD_LETTER:
                letters.append(row)
            continue
        offsets.append(offset)
    if letters:
        await _set_aside(sender, policy, letters, where)
    return Disposed(rows, offsets, len(made.rows))


def poison_error(topic: str, partition: int, row: PoisonRow) -> ConversionFailed:
    part = "key" if row.is_key else "value"
    return ConversionFailed(
        f"The {part} of {topic}-{partition} at offset {row.record.offset} cannot be read: {row.poison.reason.name}, "
        f"{row.poison.detail[:300]}. Seek past it, or ask with on_poison=row, skip or dead_letter."
    )


async def _set_aside(sender: Sender, policy: PoisonPolicy, letters: Sequence[PoisonRow], where: Where) -> None:
    """Writes dead letters. Returns after the acknowledgement, because the original records then count as read."""
    now_ms = int(time.time() * 1000)
    by_topic: dict[str, list[OutgoingRecord]] = {}
    for row in letters:
        record = row.record
        origin_topic, partition = where(record)
        topic = policy.dead_letter_topic or origin_topic + policy.suffix
        origin = LetterRecord(
            origin_topic,
            record.key,
            record.value,
            tuple(record.headers),
            partition,
            record.offset,
            record.timestamp,
        )
        letter = to_dead_letter(
            origin, row.poison, dead_letter_topic=topic, application=APPLICATION, now_ms=now_ms, is_key=row.is_key
        )
        headers = [(name, value or b"") for name, value in letter.headers]
        by_topic.setdefault(topic, []).append(OutgoingRecord(letter.key, letter.value, None, None, headers))
    for topic, outgoing in by_topic.items():
        for ticket in await sender.place(topic, outgoing):
            await ticket.delivered()
