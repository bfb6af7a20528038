"""Finds expired offsets (KIP-211, Kafka's `offsetExpirationCondition`)."""

from collections.abc import Iterator

from headgate.broker.state.groups.group import Group
from headgate.broker.state.groups.offsets import Offsets, TopicPartition, is_expired
from headgate.broker.state.groups.states import GroupState
from headgate.broker.state.groups.subscription import CONSUMER_PROTOCOL_TYPE


def expired_partitions(group: Group, offsets: Offsets, now_wall_ms: int, retention_ms: int) -> Iterator[TopicPartition]:
    """The expired offsets. A stable group keeps offsets of subscribed topics. A rebalancing group keeps all offsets."""
    counts_from_empty = group.protocol_type is not None and group.state is GroupState.EMPTY
    is_simple = group.protocol_type is None
    is_stable_consumer = (
        group.protocol_type == CONSUMER_PROTOCOL_TYPE and group.topics is not None and group.state is GroupState.STABLE
    )
    if not (counts_from_empty or is_simple or is_stable_consumer):
        return
    for topic, partitions in offsets.of_group(group.group_id).items():
        if group.is_subscribed_to(topic):
            continue
        for partition, value in partitions.items():
            base_ms = group.state_since_wall_ms if counts_from_empty else value.commit_timestamp_ms
            if is_expired(value, base_ms, now_wall_ms, retention_ms):
                yield topic, partition
