"""Offset ranges: limits the records of a micro-batch and divides them among Spark's tasks. No I/O.

The rules are those of Spark's Kafka source, with one difference: a batch never exceeds `maxOffsetsPerTrigger`, even if
there are more partitions than `maxOffsetsPerTrigger`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from aiokafka.structs import TopicPartition

from headgate.spark_udfs.source.offsets import Offsets

SPLITS_MAX = 100_000
"""Maximum number of ranges that one range is split into. More tasks overload Spark's scheduler."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Records of one partition from `start` (inclusive) to `end` (exclusive)."""

    at: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """Upper bound for the number of records: compaction and transaction markers leave gaps."""
        return self.end - self.start


def limited(start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], records_max: int) -> Offsets:
    """Returns the end offsets of a batch with at most `records_max` records.

    Each partition gets a share in proportion to its unread records. A partition with unread records gets at least one
    record if `records_max` allows it.
    """
    waiting = {at: end - start[at] for at, end in latest.items() if at in start and end > start[at]}
    total = sum(waiting.values())
    if total <= records_max:
        return dict(latest)
    shares = {at: records_max * size // total for at, size in waiting.items()}
    # Sort partitions without a share first, then by largest remainder. The order is deterministic.
    eager = sorted(waiting, key=lambda at: (shares[at] > 0, -(records_max * waiting[at] % total), at))
    for at in eager[: records_max - sum(shares.values())]:
        shares[at] += 1
    surplus = [at for at in waiting if shares[at] == 0]
    for at in sorted(surplus, key=lambda at: (-waiting[at], at)):
        # Move one record from the largest share to each partition without a share.
        giver = max(shares, key=lambda other: (shares[other], other))
        if shares[giver] <= 1:
            break
        shares[giver] -= 1
        shares[at] = 1
    return {at: start[at] + shares[at] if at in waiting else end for at, end in latest.items()}


def divided(
    ranges: Iterable[OffsetRange], partitions_min: int | None = None, records_max: int | None = None
) -> list[OffsetRange]:
    """Drops empty ranges, and splits the others into about `partitions_min` ranges of limited size."""
    filled = [one for one in ranges if one.size > 0]
    if records_max is not None:
        filled = [piece for one in filled for piece in _cut(one, -(-one.size // records_max))]
    if partitions_min is None or not filled or len(filled) >= partitions_min:
        return filled
    total = sum(one.size for one in filled)
    whole = [one for one in filled if _parts(one.size, total, partitions_min) == 1]
    rest = total - sum(one.size for one in whole)
    wanted = max(partitions_min - len(whole), 1)
    divided_ranges: list[OffsetRange] = []
    for one in filled:
        is_whole = _parts(one.size, total, partitions_min) == 1
        divided_ranges += _cut(one, 1 if is_whole else _parts(one.size, rest, wanted))
    return divided_ranges


def _parts(size: int, total: int, wanted: int) -> int:
    return max((2 * size * wanted + total) // (2 * total), 1)


def _cut(one: OffsetRange, parts: int) -> list[OffsetRange]:
    parts = max(min(parts, one.size, SPLITS_MAX), 1)
    bounds = [one.start + one.size * part // parts for part in range(parts + 1)]
    return [OffsetRange(one.at, bounds[part], bounds[part + 1]) for part in range(parts)]
