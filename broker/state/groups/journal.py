"""The interface to the durable journal of groups, and the entries of the coordinator.

Entries have the format of Kafka's `__consumer_offsets` records. A None value is a tombstone. `GroupJournal` keeps the
last stored value of each group for `snapshot`: after a restart, a rebalancing group must have its last stored state.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from kio.schema.errors import ErrorCode

from headgate.broker.runtime.deferred import Deferred
from headgate.broker.state.groups.group import Group
from headgate.broker.state.groups.records import encode_group_key, encode_group_value
from headgate.broker.state.groups.settings import GROUP_RECORD_BYTES_MAX

Entry = tuple[bytes, bytes | None]

_APPEND_ERRORS: Mapping[ErrorCode, ErrorCode] = {
    ErrorCode.unknown_topic_or_partition: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas: ErrorCode.coordinator_not_available,
    ErrorCode.request_timed_out: ErrorCode.coordinator_not_available,
    ErrorCode.not_leader_or_follower: ErrorCode.not_coordinator,
    ErrorCode.kafka_storage_error: ErrorCode.not_coordinator,
    ErrorCode.message_too_large: ErrorCode.unknown_server_error,
    ErrorCode.record_list_too_large: ErrorCode.unknown_server_error,
}


def answer_for(error: ErrorCode) -> ErrorCode:
    """The error code for the client if the journal fails. Clients know how to handle these codes."""
    return _APPEND_ERRORS.get(error, error)


class Journal(Protocol):
    def append(self, entries: Sequence[Entry]) -> Deferred[ErrorCode]:
        """Write all entries or none. Completes when they are durable, in the order of the calls."""
        ...


class GroupJournal:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._newest: dict[str, bytes] = {}

    def store(self, group: Group, assignments: Mapping[str, bytes]) -> Deferred[ErrorCode]:
        """Write the current state of the group, with these assignments of its members."""
        value = encode_group_value(group, assignments)
        if len(value) > GROUP_RECORD_BYTES_MAX:
            return Deferred.of(ErrorCode.message_too_large)
        self._newest[group.group_id] = value
        return self._journal.append([(encode_group_key(group.group_id), value)])

    def append(self, entries: Sequence[Entry]) -> Deferred[ErrorCode]:
        return self._journal.append(entries)

    def tombstone(self, group_id: str) -> Entry:
        self._newest.pop(group_id, None)
        return encode_group_key(group_id), None

    def replayed(self, group_id: str, value: bytes | None) -> None:
        if value is None:
            self._newest.pop(group_id, None)
        else:
            self._newest[group_id] = value

    def entries(self, group_ids: Iterable[str]) -> Iterator[tuple[bytes, bytes]]:
        for group_id in group_ids:
            value = self._newest.get(group_id)
            if value is not None:
                yield encode_group_key(group_id), value
