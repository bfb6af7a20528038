"""Restores groups and offsets from the journal, like Kafka when a coordinator loads a partition.

A group with members is restored as Stable in its generation, so no rebalance is necessary. The broker logs and skips
unreadable entries, because one invalid record must not affect other groups.
"""

import logging
from collections.abc import Iterable

from headgate.broker.state.groups.group import Group
from headgate.broker.state.groups.journal import GroupJournal
from headgate.broker.state.groups.members import Member
from headgate.broker.state.groups.offsets import Offsets
from headgate.broker.state.groups.outbox import Outbox
from headgate.broker.state.groups.records import (
    NO_TIMESTAMP,
    GroupKey,
    OffsetKey,
    StoredGroup,
    decode_group_value,
    decode_key,
    decode_offset_value,
)
from headgate.broker.state.groups.states import GroupState
from headgate.broker.state.groups.wire import Malformed

log = logging.getLogger("headgate.broker.groups")


class Loading:
    def __init__(self, groups: dict[str, Group], offsets: Offsets, journal: GroupJournal, outbox: Outbox) -> None:
        self._groups = groups
        self._offsets = offsets
        self._journal = journal
        self._outbox = outbox

    def replay(self, entries: Iterable[tuple[bytes | None, bytes | None]], now_wall_ms: int) -> None:
        for index, (key, value) in enumerate(entries):
            try:
                self._apply(key, value, now_wall_ms)
            except Malformed as error:
                log.error("groups journal: skipping unreadable entry %d: %s", index, error)

    def _apply(self, key_bytes: bytes | None, value_bytes: bytes | None, now_wall_ms: int) -> None:
        if key_bytes is None:
            raise Malformed("the entry has no key")
        key = decode_key(key_bytes)
        if isinstance(key, OffsetKey):
            value = decode_offset_value(value_bytes) if value_bytes is not None else None
            self._offsets.replay(key, value)
            if value is not None and key.group_id not in self._groups:
                self._groups[key.group_id] = Group(key.group_id, now_wall_ms, self._outbox)
        elif isinstance(key, GroupKey):
            stored = decode_group_value(value_bytes) if value_bytes is not None else None
            if stored is None:
                self._groups.pop(key.group_id, None)
            else:
                self._groups[key.group_id] = restore(key.group_id, stored, now_wall_ms, self._outbox)
            self._journal.replayed(key.group_id, value_bytes)
        else:
            raise Malformed(f"key version {key.version} belongs to another group type")


def restore(group_id: str, stored: StoredGroup, now_wall_ms: int, outbox: Outbox) -> Group:
    group = Group(group_id, now_wall_ms, outbox)
    group.generation_id = stored.generation_id
    group.protocol_type = stored.protocol_type or None
    group.protocol_name = stored.protocol_name
    group.leader_id = stored.leader if stored.members else None
    for each in {member.member_id: member for member in stored.members}.values():
        group.add(
            Member(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                client_id=each.client_id,
                client_host=each.client_host,
                session_timeout_ms=each.session_timeout_ms,
                rebalance_timeout_ms=each.rebalance_timeout_ms,
                protocols={stored.protocol_name or "": each.subscription},
                assignment=each.assignment,
            )
        )
    if group.members and group.leader_id not in group.members:
        group.leader_id = next(iter(group.members))
    group.state = group.previous_state = GroupState.STABLE if group.members else GroupState.EMPTY
    if stored.state_timestamp_ms != NO_TIMESTAMP:
        group.state_since_wall_ms = stored.state_timestamp_ms
    group.learn_topics()
    return group
