"""The handlers by API key. ApiVersions advertises exactly these APIs."""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from headgate.broker.handlers import (
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    api_versions,
    consumer_group_heartbeat,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    elect_leaders,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
)
from headgate.broker.protocol.entities import ApiVersionRange

Handle = Callable[..., Any]

MODULES: tuple[ModuleType, ...] = (
    produce,
    fetch,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    find_coordinator,
    join_group,
    heartbeat,
    leave_group,
    sync_group,
    describe_groups,
    list_groups,
    api_versions,
    create_topics,
    delete_topics,
    delete_records,
    init_producer_id,
    offset_for_leader_epoch,
    describe_acls,
    create_acls,
    delete_acls,
    describe_configs,
    alter_configs,
    alter_replica_log_dirs,
    describe_log_dirs,
    create_partitions,
    delete_groups,
    elect_leaders,
    incremental_alter_configs,
    alter_partition_reassignments,
    list_partition_reassignments,
    offset_delete,
    describe_cluster,
    describe_producers,
    consumer_group_heartbeat,
    list_config_resources,
    describe_topic_partitions,
)

HANDLERS: Mapping[int, tuple[range, Handle]] = {module.API_KEY: (module.VERSIONS, module.handle) for module in MODULES}

API_VERSIONS: tuple[ApiVersionRange, ...] = tuple(
    ApiVersionRange(api_key, versions.start, versions.stop - 1) for api_key, (versions, _) in sorted(HANDLERS.items())
)
