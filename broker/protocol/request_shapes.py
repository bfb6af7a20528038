"""The fields that handlers read from requests, as protocols for the type checker.

`entities.read_request` returns a kio entity of the request's version. The entity has the fields of all versions. A
field that does not exist in the version has its default value. Comments list the versions only if a handler needs them.
"""

from datetime import timedelta
from typing import Protocol
from uuid import UUID


class ProducePartition(Protocol):
    index: int
    records: bytes | memoryview | None


class ProduceTopic(Protocol):
    name: str  # up to version 12
    topic_id: UUID | None  # from version 13
    partition_data: tuple[ProducePartition, ...]


class ProduceRequest(Protocol):
    acks: int
    topic_data: tuple[ProduceTopic, ...]


class FetchPartition(Protocol):
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    partition_max_bytes: int


class FetchTopic(Protocol):
    topic: str  # up to version 12
    topic_id: UUID | None  # from version 13
    partitions: tuple[FetchPartition, ...]


class FetchRequest(Protocol):
    max_wait: timedelta
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_epoch: int
    topics: tuple[FetchTopic, ...]
    forgotten_topics_data: tuple[object, ...]
    rack_id: str


class ListOffsetsPartition(Protocol):
    partition_index: int
    current_leader_epoch: int
    timestamp: int


class ListOffsetsTopic(Protocol):
    name: str
    partitions: tuple[ListOffsetsPartition, ...]


class ListOffsetsRequest(Protocol):
    topics: tuple[ListOffsetsTopic, ...]


class OffsetForLeaderEpochPartition(Protocol):
    partition: int
    current_leader_epoch: int
    leader_epoch: int


class OffsetForLeaderEpochTopic(Protocol):
    topic: str
    partitions: tuple[OffsetForLeaderEpochPartition, ...]


class OffsetForLeaderEpochRequest(Protocol):
    topics: tuple[OffsetForLeaderEpochTopic, ...]


class InitProducerIdRequest(Protocol):
    transactional_id: str | None
    producer_id: int
    producer_epoch: int


class DescribeProducersTopic(Protocol):
    name: str
    partition_indexes: tuple[int, ...]


class DescribeProducersRequest(Protocol):
    topics: tuple[DescribeProducersTopic, ...]


class ApiVersionsRequest(Protocol):
    client_software_name: str
    client_software_version: str


class MetadataTopic(Protocol):
    name: str | None
    topic_id: UUID | None


class MetadataRequest(Protocol):
    topics: tuple[MetadataTopic, ...] | None
    allow_auto_topic_creation: bool
    include_cluster_authorized_operations: bool
    include_topic_authorized_operations: bool


class DescribeClusterRequest(Protocol):
    include_cluster_authorized_operations: bool
    endpoint_type: int


class Cursor(Protocol):
    topic_name: str
    partition_index: int


class TopicName(Protocol):
    name: str


class DescribeTopicPartitionsRequest(Protocol):
    topics: tuple[TopicName, ...]
    response_partition_limit: int
    cursor: Cursor | None


class TopicConfig(Protocol):
    name: str
    value: str | None


class ReplicaAssignment(Protocol):
    partition_index: int
    broker_ids: tuple[int, ...]


class NewTopic(Protocol):
    name: str
    num_partitions: int
    replication_factor: int
    assignments: tuple[ReplicaAssignment, ...]
    configs: tuple[TopicConfig, ...]


class CreateTopicsRequest(Protocol):
    topics: tuple[NewTopic, ...]
    validate_only: bool


class DeletedTopic(Protocol):
    name: str | None
    topic_id: UUID | None


class DeleteTopicsRequest(Protocol):
    topic_names: tuple[str, ...]  # up to version 5
    topics: tuple[DeletedTopic, ...]  # from version 6


class NewPartitionsAssignment(Protocol):
    broker_ids: tuple[int, ...]


class NewPartitions(Protocol):
    name: str
    count: int
    assignments: tuple[NewPartitionsAssignment, ...] | None


class CreatePartitionsRequest(Protocol):
    topics: tuple[NewPartitions, ...]
    validate_only: bool


class DeleteRecordsPartition(Protocol):
    partition_index: int
    offset: int


class DeleteRecordsTopic(Protocol):
    name: str
    partitions: tuple[DeleteRecordsPartition, ...]


class DeleteRecordsRequest(Protocol):
    topics: tuple[DeleteRecordsTopic, ...]


class DescribeConfigsResource(Protocol):
    resource_type: int
    resource_name: str
    configuration_keys: tuple[str, ...] | None


class DescribeConfigsRequest(Protocol):
    resources: tuple[DescribeConfigsResource, ...]
    include_synonyms: bool
    include_documentation: bool


class AlterConfigsResource(Protocol):
    resource_type: int
    resource_name: str
    configs: tuple[TopicConfig, ...]


class AlterConfigsRequest(Protocol):
    resources: tuple[AlterConfigsResource, ...]
    validate_only: bool


class ConfigOperation(Protocol):
    name: str
    config_operation: int
    value: str | None


class IncrementalAlterConfigsResource(Protocol):
    resource_type: int
    resource_name: str
    configs: tuple[ConfigOperation, ...]


class IncrementalAlterConfigsRequest(Protocol):
    resources: tuple[IncrementalAlterConfigsResource, ...]
    validate_only: bool


class ListConfigResourcesRequest(Protocol):
    resource_types: tuple[int, ...]


class CreateAclsRequest(Protocol):
    creations: tuple[object, ...]


class DeleteAclsRequest(Protocol):
    filters: tuple[object, ...]


class ReassignedPartition(Protocol):
    partition_index: int
    replicas: tuple[int, ...] | None


class ReassignedTopic(Protocol):
    name: str
    partitions: tuple[ReassignedPartition, ...]


class AlterPartitionReassignmentsRequest(Protocol):
    allow_replication_factor_change: bool
    topics: tuple[ReassignedTopic, ...]


class LogDirTopic(Protocol):
    name: str
    partitions: tuple[int, ...]


class LogDir(Protocol):
    path: str
    topics: tuple[LogDirTopic, ...]


class AlterReplicaLogDirsRequest(Protocol):
    dirs: tuple[LogDir, ...]


class TopicPartitions(Protocol):
    topic: str
    partitions: tuple[int, ...]


class DescribeLogDirsRequest(Protocol):
    topics: tuple[TopicPartitions, ...] | None


class ElectLeadersRequest(Protocol):
    election_type: int
    topic_partitions: tuple[TopicPartitions, ...] | None
