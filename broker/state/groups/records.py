"""The records of `__consumer_offsets`: `OffsetCommitKey/Value` and `GroupMetadataKey/Value`, prefixed with a version.

Values have version 3, and offsets with their own retention time version 1, as in Kafka. Versions 0 to 4 can be read.
kio does not contain these messages.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from headgate.broker.state.groups.group import Group
from headgate.broker.state.groups.wire import Malformed, Reader, write_bytes, write_string

OFFSET_KEY_VERSIONS = (0, 1)
GROUP_KEY_VERSION = 2
FIRST_FLEXIBLE_VALUE_VERSION = 4
VALUE_VERSION_MAX = 4
NO_TIMESTAMP = -1


@dataclass(frozen=True, slots=True)
class OffsetKey:
    group_id: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class GroupKey:
    group_id: str


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key of a newer group type, such as KIP-848."""

    version: int


Key: TypeAlias = OffsetKey | GroupKey | UnknownKey


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class StoredMember:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class StoredGroup:
    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader: str | None
    state_timestamp_ms: int
    members: Sequence[StoredMember]


def encode_offset_key(key: OffsetKey) -> bytes:
    return (
        struct.pack(">h", 1) + write_string(key.group_id) + write_string(key.topic) + struct.pack(">i", key.partition)
    )


def encode_group_key(group_id: str) -> bytes:
    return struct.pack(">h", GROUP_KEY_VERSION) + write_string(group_id)


def decode_key(data: bytes) -> Key:
    reader = Reader(data)
    version = reader.int16()
    if version in OFFSET_KEY_VERSIONS:
        return OffsetKey(reader.string(), reader.string(), reader.int32())
    if version == GROUP_KEY_VERSION:
        return GroupKey(reader.string())
    return UnknownKey(version)


def encode_offset_value(value: CommittedOffset) -> bytes:
    metadata = write_string(value.metadata)
    if value.expire_timestamp_ms is None:
        return (
            struct.pack(">hqi", 3, value.offset, value.leader_epoch)
            + metadata
            + struct.pack(">q", value.commit_timestamp_ms)
        )
    return (
        struct.pack(">hq", 1, value.offset)
        + metadata
        + struct.pack(">qq", value.commit_timestamp_ms, value.expire_timestamp_ms)
    )


def decode_offset_value(data: bytes) -> CommittedOffset:
    reader = Reader(data)
    version = reader.int16()
    _check_version(version)
    reader.is_flexible = version >= FIRST_FLEXIBLE_VALUE_VERSION
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else -1
    metadata = reader.string()
    commit_timestamp_ms = reader.int64()
    expire_timestamp_ms = reader.int64() if version == 1 else NO_TIMESTAMP
    return CommittedOffset(
        offset,
        leader_epoch,
        metadata,
        commit_timestamp_ms,
        None if expire_timestamp_ms == NO_TIMESTAMP else expire_timestamp_ms,
    )


def encode_group_value(group: Group, assignments: Mapping[str, bytes]) -> bytes:
    parts = [
        struct.pack(">h", 3),
        write_string(group.protocol_type or ""),
        struct.pack(">i", group.generation_id),
        write_string(group.protocol_name),
        write_string(group.leader_id),
        struct.pack(">qi", group.state_since_wall_ms, len(group.members)),
    ]
    for member in group.members.values():
        parts += [
            write_string(member.member_id),
            write_string(member.group_instance_id),
            write_string(member.client_id),
            write_string(member.client_host),
            struct.pack(">ii", member.rebalance_timeout_ms, member.session_timeout_ms),
            write_bytes(member.metadata(group.protocol_name)),
            write_bytes(assignments.get(member.member_id, b"")),
        ]
    return b"".join(parts)


def decode_group_value(data: bytes) -> StoredGroup:
    reader = Reader(data)
    version = reader.int16()
    _check_version(version)
    reader.is_flexible = version >= FIRST_FLEXIBLE_VALUE_VERSION
    protocol_type = reader.string()
    generation_id = reader.int32()
    protocol_name = reader.nullable_string()
    leader = reader.nullable_string()
    state_timestamp_ms = reader.int64() if version >= 2 else NO_TIMESTAMP
    members = [_decode_member(reader, version) for _ in range(reader.array_length())]
    return StoredGroup(protocol_type, generation_id, protocol_name, leader, state_timestamp_ms, members)


def _decode_member(reader: Reader, version: int) -> StoredMember:
    member_id = reader.string()
    group_instance_id = reader.nullable_string() if version >= 3 else None
    client_id = reader.string()
    client_host = reader.string()
    rebalance_timeout_ms = reader.int32() if version >= 1 else -1
    session_timeout_ms = reader.int32()
    subscription = reader.byte_string()
    assignment = reader.byte_string()
    reader.skip_tagged_fields()
    return StoredMember(
        member_id,
        group_instance_id,
        client_id,
        client_host,
        session_timeout_ms if rebalance_timeout_ms == -1 else rebalance_timeout_ms,
        session_timeout_ms,
        subscription,
        assignment,
    )


def _check_version(version: int) -> None:
    if not 0 <= version <= VALUE_VERSION_MAX:
        raise Malformed(f"value version {version} is not supported; supported versions are 0 to {VALUE_VERSION_MAX}")
