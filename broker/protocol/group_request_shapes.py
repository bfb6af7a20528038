"""The fields that handlers read from group requests. See `request_shapes`."""

from datetime import timedelta
from typing import Protocol
from uuid import UUID


class FindCoordinatorRequest(Protocol):
    key_type: int
    coordinator_keys: tuple[str, ...]  # from version 4


class JoinGroupProtocol(Protocol):
    name: str
    metadata: bytes


class JoinGroupRequest(Protocol):
    group_id: str
    session_timeout: timedelta
    rebalance_timeout: timedelta  # from version 1
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: tuple[JoinGroupProtocol, ...]


class SyncGroupAssignment(Protocol):
    member_id: str
    assignment: bytes


class SyncGroupRequest(Protocol):
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: tuple[SyncGroupAssignment, ...]


class HeartbeatRequest(Protocol):
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None


class LeavingMember(Protocol):
    member_id: str
    group_instance_id: str | None


class LeaveGroupRequest(Protocol):
    group_id: str
    member_id: str  # up to version 2
    members: tuple[LeavingMember, ...]  # from version 3


class OffsetCommitPartition(Protocol):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class OffsetCommitTopic(Protocol):
    name: str  # up to version 9
    topic_id: UUID | None  # from version 10
    partitions: tuple[OffsetCommitPartition, ...]


class OffsetCommitRequest(Protocol):
    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    retention_time: timedelta  # up to version 4
    topics: tuple[OffsetCommitTopic, ...]


class OffsetFetchTopic(Protocol):
    name: str  # up to version 9
    topic_id: UUID | None  # from version 10
    partition_indexes: tuple[int, ...]


class OffsetFetchGroup(Protocol):
    group_id: str
    topics: tuple[OffsetFetchTopic, ...] | None


class OffsetFetchRequest(OffsetFetchGroup, Protocol):
    """Up to version 7, the request contains the fields of one group."""

    groups: tuple[OffsetFetchGroup, ...]  # from version 8
    require_stable: bool


class OffsetDeletePartition(Protocol):
    partition_index: int


class OffsetDeleteTopic(Protocol):
    name: str
    partitions: tuple[OffsetDeletePartition, ...]


class OffsetDeleteRequest(Protocol):
    group_id: str
    topics: tuple[OffsetDeleteTopic, ...]


class DescribeGroupsRequest(Protocol):
    groups: tuple[str, ...]
    include_authorized_operations: bool


class ListGroupsRequest(Protocol):
    states_filter: tuple[str, ...]
    types_filter: tuple[str, ...]


class DeleteGroupsRequest(Protocol):
    groups_names: tuple[str, ...]


class ConsumerGroupHeartbeatRequest(Protocol):
    group_id: str
