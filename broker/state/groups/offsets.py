"""The committed offsets of all groups: durable ones, and ones that the journal has not written yet.

Clients read only durable offsets. Otherwise a consumer could resume from a commit that a crash undoes. Deletions also
apply to pending commits, because the journal writes and completes entries in order.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from headgate.broker.runtime.deferred import Deferred
from headgate.broker.state.groups.journal import Entry
from headgate.broker.state.groups.records import CommittedOffset, OffsetKey, encode_offset_key, encode_offset_value

TopicPartition = tuple[str, int]
Change = tuple[TopicPartition, CommittedOffset | None]

OffsetsByTopic = Mapping[str, Mapping[int, CommittedOffset]]
"""The offsets of a group by topic and partition."""


@dataclass(slots=True)
class _InFlight:
    newest: CommittedOffset | None
    count: int = 0


class Offsets:
    def __init__(self, append: Callable[[Sequence[Entry]], Deferred[ErrorCode]]) -> None:
        self._append = append
        self._durable: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self._in_flight: dict[str, dict[TopicPartition, _InFlight]] = {}
        self._last_append: dict[str, Deferred[ErrorCode]] = {}

    def change(
        self, group_id: str, changes: Sequence[Change], more_entries: Sequence[Entry] = ()
    ) -> Deferred[ErrorCode]:
        """Write commits and deletions (None) to the journal, followed by `more_entries`. Apply them when durable."""
        entries: list[Entry] = []
        flights = self._in_flight.setdefault(group_id, {}) if changes else {}
        for partition, value in changes:
            encoded = encode_offset_value(value) if value is not None else None
            entries.append((encode_offset_key(OffsetKey(group_id, *partition)), encoded))
            flight = flights.setdefault(partition, _InFlight(value))
            flight.newest = value
            flight.count += 1
        appended = self._append([*entries, *more_entries])
        appended.then(lambda error: self._on_appended(group_id, changes, error))
        if not appended.done:
            self._last_append[group_id] = appended
            appended.then(lambda _: self._forget_append(group_id, appended))
        return appended

    def replay(self, key: OffsetKey, value: CommittedOffset | None) -> None:
        if value is not None:
            self._durable.setdefault(key.group_id, {}).setdefault(key.topic, {})[key.partition] = value
            return
        topics = self._durable.get(key.group_id, {})
        partitions = topics.get(key.topic, {})
        partitions.pop(key.partition, None)
        if not partitions:
            topics.pop(key.topic, None)
        if not topics:
            self._durable.pop(key.group_id, None)

    def of_group(self, group_id: str) -> OffsetsByTopic:
        return self._durable.get(group_id, {})

    def groups(self) -> Collection[str]:
        return self._durable.keys() | self._in_flight.keys()

    def groups_with(self, topic: str) -> list[str]:
        """Groups with a durable or pending offset of the topic."""
        durable = {group_id for group_id, topics in self._durable.items() if topic in topics}
        pending = {
            group_id for group_id, flights in self._in_flight.items() if any(name == topic for name, _ in flights)
        }
        return list(durable | pending)

    def known_partitions(self, group_id: str) -> set[TopicPartition]:
        """Partitions with a durable or pending offset."""
        topics = self._durable.get(group_id, {})
        durable = {(topic, partition) for topic, partitions in topics.items() for partition in partitions}
        return durable | self._in_flight.get(group_id, {}).keys()

    def when_settled(self, group_id: str) -> Deferred[ErrorCode]:
        """Completes when all pending commits of the group are written."""
        return self._last_append.get(group_id) or Deferred.of(ErrorCode.none)

    def newest(self) -> Iterator[tuple[OffsetKey, CommittedOffset]]:
        """All offsets, including pending ones. Offsets may change between two steps: reads each one when it is due."""
        for group_id in list(self.groups()):
            for topic, partition in self.known_partitions(group_id):
                flight = self._in_flight.get(group_id, {}).get((topic, partition))
                durable = self._durable.get(group_id, {}).get(topic, {}).get(partition)
                value = flight.newest if flight is not None else durable
                if value is not None:
                    yield OffsetKey(group_id, topic, partition), value

    def _on_appended(self, group_id: str, changes: Sequence[Change], error: ErrorCode) -> None:
        for partition, value in changes:
            flights = self._in_flight[group_id]
            flight = flights[partition]
            flight.count -= 1
            if flight.count == 0:
                del flights[partition]
                if not flights:
                    del self._in_flight[group_id]
            if error is ErrorCode.none:
                self.replay(OffsetKey(group_id, *partition), value)

    def _forget_append(self, group_id: str, appended: Deferred[ErrorCode]) -> None:
        if self._last_append.get(group_id) is appended:
            del self._last_append[group_id]


def is_expired(value: CommittedOffset, base_wall_ms: int, now_wall_ms: int, retention_ms: int) -> bool:
    """`base_wall_ms` is the time of the commit, or the time when the group became empty (KIP-211)."""
    if value.expire_timestamp_ms is not None:
        return now_wall_ms >= value.expire_timestamp_ms
    return now_wall_ms - base_wall_ms >= retention_ms
