"""All handlers by API key: what is here is advertised, what is not here is not there."""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from broker.handlers import (
    alter_configs,
    api_versions,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
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
    describe_configs,
    alter_configs,
    describe_log_dirs,
    create_partitions,
    delete_groups,
    incremental_alter_configs,
    list_partition_reassignments,
    offset_delete,
    describe_cluster,
    describe_producers,
    list_config_resources,
    describe_topic_partitions,
)

HANDLERS: Mapping[int, tuple[range, Handle]] = {module.API_KEY: (module.VERSIONS, module.handle) for module in MODULES}
