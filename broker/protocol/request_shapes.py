"""The parameters of handlers: the context of a request, and the request types for the type checker.

`entities.read_request` returns a kio entity of the request's version. The entity has the fields of all versions. A
field that does not exist in the version has its default value. Therefore the newest version declares the fields.
Protocols declare fields that only older versions have. At runtime, kio's names are placeholders: the import of these
modules takes 0.2 s.
"""
# ruff: noqa: PLC0414  # handlers import these names from here

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from headgate.broker.protocol.entities import ApiVersionRange

if TYPE_CHECKING:
    from kio.schema.alter_configs.v2.request import AlterConfigsRequest as AlterConfigsRequest
    from kio.schema.alter_partition_reassignments.v1.request import (
        AlterPartitionReassignmentsRequest as AlterPartitionReassignmentsRequest,
    )
    from kio.schema.alter_replica_log_dirs.v2.request import AlterReplicaLogDirsRequest as AlterReplicaLogDirsRequest
    from kio.schema.api_versions.v4.request import ApiVersionsRequest as ApiVersionsRequest
    from kio.schema.consumer_group_heartbeat.v1.request import (
        ConsumerGroupHeartbeatRequest as ConsumerGroupHeartbeatRequest,
    )
    from kio.schema.create_acls.v3.request import CreateAclsRequest as CreateAclsRequest
    from kio.schema.create_partitions.v3.request import CreatePartitionsAssignment as CreatePartitionsAssignment
    from kio.schema.create_partitions.v3.request import CreatePartitionsRequest as CreatePartitionsRequest
    from kio.schema.create_partitions.v3.request import CreatePartitionsTopic as CreatePartitionsTopic
    from kio.schema.create_topics.v7.request import CreatableTopic as CreatableTopic
    from kio.schema.create_topics.v7.request import CreateTopicsRequest as CreateTopicsRequest
    from kio.schema.delete_acls.v3.request import DeleteAclsRequest as DeleteAclsRequest
    from kio.schema.delete_groups.v2.request import DeleteGroupsRequest as DeleteGroupsRequest
    from kio.schema.delete_records.v2.request import DeleteRecordsRequest as DeleteRecordsRequest
    from kio.schema.delete_topics.v6.request import DeleteTopicState
    from kio.schema.describe_cluster.v2.request import DescribeClusterRequest as DescribeClusterRequest
    from kio.schema.describe_configs.v4.request import DescribeConfigsRequest as DescribeConfigsRequest
    from kio.schema.describe_groups.v6.request import DescribeGroupsRequest as DescribeGroupsRequest
    from kio.schema.describe_log_dirs.v5.request import DescribeLogDirsRequest as DescribeLogDirsRequest
    from kio.schema.describe_producers.v0.request import DescribeProducersRequest as DescribeProducersRequest
    from kio.schema.describe_topic_partitions.v0.request import (
        DescribeTopicPartitionsRequest as DescribeTopicPartitionsRequest,
    )
    from kio.schema.elect_leaders.v2.request import ElectLeadersRequest as ElectLeadersRequest
    from kio.schema.fetch.v18.request import FetchPartition as FetchPartition
    from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest as FindCoordinatorRequest
    from kio.schema.heartbeat.v4.request import HeartbeatRequest as HeartbeatRequest
    from kio.schema.incremental_alter_configs.v1.request import (
        IncrementalAlterConfigsRequest as IncrementalAlterConfigsRequest,
    )
    from kio.schema.init_producer_id.v5.request import InitProducerIdRequest as InitProducerIdRequest
    from kio.schema.join_group.v9.request import JoinGroupRequest as JoinGroupRequest
    from kio.schema.leave_group.v5.request import MemberIdentity
    from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest as ListConfigResourcesRequest
    from kio.schema.list_groups.v5.request import ListGroupsRequest as ListGroupsRequest
    from kio.schema.list_offsets.v11.request import ListOffsetsPartition as ListOffsetsPartition
    from kio.schema.list_offsets.v11.request import ListOffsetsRequest as ListOffsetsRequest
    from kio.schema.metadata.v10.request import MetadataRequest as MetadataRequest
    from kio.schema.metadata.v10.request import MetadataRequestTopic as MetadataRequestTopic
    from kio.schema.offset_commit.v10.request import OffsetCommitRequestPartition
    from kio.schema.offset_delete.v0.request import OffsetDeleteRequest as OffsetDeleteRequest
    from kio.schema.offset_for_leader_epoch.v4.request import OffsetForLeaderEpochRequest as OffsetForLeaderEpochRequest
    from kio.schema.offset_for_leader_epoch.v4.request import OffsetForLeaderPartition as OffsetForLeaderPartition
    from kio.schema.produce.v13.request import PartitionProduceData
    from kio.schema.sync_group.v5.request import SyncGroupRequest as SyncGroupRequest
else:

    def __getattr__(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return object


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The metadata of a request that a handler gets in addition to the body."""

    api_version: int
    client_id: str | None
    client_host: str
    api_versions: tuple[ApiVersionRange, ...] = ()
    """The APIs that the engine serves."""


class ProduceTopic(Protocol):
    name: str  # up to version 12
    topic_id: UUID | None  # from version 13
    partition_data: "tuple[PartitionProduceData, ...]"


class ProduceRequest(Protocol):
    acks: int
    topic_data: tuple[ProduceTopic, ...]


class FetchTopic(Protocol):
    topic: str  # up to version 12
    topic_id: UUID | None  # from version 13
    partitions: "tuple[FetchPartition, ...]"


class FetchRequest(Protocol):
    max_wait: timedelta
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_epoch: int
    topics: tuple[FetchTopic, ...]
    forgotten_topics_data: tuple[object, ...]
    rack_id: str


class DeleteTopicsRequest(Protocol):
    topic_names: tuple[str, ...]  # up to version 5
    topics: "tuple[DeleteTopicState, ...]"  # from version 6


class LeaveGroupRequest(Protocol):
    group_id: str
    member_id: str  # up to version 2
    members: "tuple[MemberIdentity, ...]"  # from version 3


class OffsetCommitTopic(Protocol):
    name: str  # up to version 9
    topic_id: UUID | None  # from version 10
    partitions: "tuple[OffsetCommitRequestPartition, ...]"


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
