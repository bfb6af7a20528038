"""Committed offsets of all groups: what is durable, and what is on its way to the journal.

Reads see durable offsets alone, so nobody resumes from a commit that a crash would undo. Deletions also reach commits
that are still under way: the journal keeps the order, and so do the completions.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from broker.deferred import Deferred
from broker.state.groups.journal import Entry
from broker.state.groups.records import CommittedOffset, OffsetKey, encode_offset_key, encode_offset_value

TopicPartition = tuple[str, int]
Change = tuple[OffsetKey, CommittedOffset | None]


@dataclass(slots=True)
class _InFlight:
    newest: CommittedOffset | None
    count: int = 0


class Offsets:
    def __init__(self, append: Callable[[Sequence[Entry]], Deferred[ErrorCode]]) -> None:
        self._append = append
        self._durable: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self._in_flight: dict[str, dict[TopicPartition, _InFlight]] = {}
        self._last_append: dict[str, Deferred[ErrorCode]] = {}

    def change(
        self, changes: Sequence[Change], more_entries: Sequence[Entry] = (), group_id: str | None = None
    ) -> Deferred[ErrorCode]:
        """Journal commits and (None) deletions, with `more_entries` after them; apply them when they are durable."""
        entries: list[Entry] = [
            (encode_offset_key(key), encode_offset_value(value) if value is not None else None)
            for key, value in changes
        ]
        for key, value in changes:
            flight = self._in_flight.setdefault(key.group_id, {}).setdefault(
                (key.topic, key.partition), _InFlight(value)
            )
            flight.newest = value
            flight.count += 1
        appended = self._append([*entries, *more_entries])
        appended.then(lambda error: self._land(changes, error))
        if group_id is not None and not appended.done:
            self._last_append[group_id] = appended
            appended.then(lambda _: self._forget_append(group_id, appended))
        return appended

    def replay(self, key: OffsetKey, value: CommittedOffset | None) -> None:
        if value is not None:
            self._durable.setdefault(key.group_id, {})[key.topic, key.partition] = value
            return
        offsets = self._durable.get(key.group_id)
        if offsets is not None:
            offsets.pop((key.topic, key.partition), None)
            if not offsets:
                del self._durable[key.group_id]

    def of_group(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        return self._durable.get(group_id, {})

    def groups(self) -> Collection[str]:
        return self._durable.keys() | self._in_flight.keys()

    def known_partitions(self, group_id: str) -> set[TopicPartition]:
        """With a durable offset or one under way."""
        return self._durable.get(group_id, {}).keys() | self._in_flight.get(group_id, {}).keys()

    def has_commits_under_way(self, group_id: str) -> bool:
        return group_id in self._in_flight

    def when_settled(self, group_id: str) -> Deferred[ErrorCode]:
        """Completes when every commit of the group that is under way now has landed."""
        return self._last_append.get(group_id) or Deferred.of(ErrorCode.none)

    def newest(self) -> Iterator[tuple[OffsetKey, CommittedOffset]]:
        """Every offset as the journal has it, those under way included."""
        for group_id in list(self.groups()):
            offsets: dict[TopicPartition, CommittedOffset | None] = dict(self._durable.get(group_id, {}))
            for partition, flight in self._in_flight.get(group_id, {}).items():
                offsets[partition] = flight.newest
            for (topic, partition_index), value in offsets.items():
                if value is not None:
                    yield OffsetKey(group_id, topic, partition_index), value

    def _land(self, changes: Sequence[Change], error: ErrorCode) -> None:
        for key, value in changes:
            flights = self._in_flight[key.group_id]
            flight = flights[key.topic, key.partition]
            flight.count -= 1
            if flight.count == 0:
                del flights[key.topic, key.partition]
                if not flights:
                    del self._in_flight[key.group_id]
            if error is ErrorCode.none:
                self.replay(key, value)

    def _forget_append(self, group_id: str, appended: Deferred[ErrorCode]) -> None:
        if self._last_append.get(group_id) is appended:
            del self._last_append[group_id]


def is_expired(value: CommittedOffset, base_wall_ms: int, now_wall_ms: int, retention_ms: int) -> bool:
    """`base_wall_ms` is the commit itself, or since when the group is empty (KIP-211)."""
    if value.expire_timestamp_ms is not None:
        return now_wall_ms >= value.expire_timestamp_ms
    return now_wall_ms - base_wall_ms >= retention_ms
