"""Replica assignments that a client makes by hand, checked by Kafka's rules."""

from collections.abc import Mapping, Sequence


class InvalidAssignment(Exception):
    """The text is what the client reads with INVALID_REPLICA_ASSIGNMENT."""


def check_replicas(broker_ids: Sequence[int], registered: frozenset[int]) -> None:
    """Raises InvalidAssignment unless the replicas of one partition are distinct brokers that exist."""
    if not broker_ids:
        raise InvalidAssignment("The manual partition assignment includes an empty replica list.")
    previous = None
    for broker_id in sorted(broker_ids):
        if broker_id not in registered:
            raise InvalidAssignment(
                f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
            )
        if broker_id == previous:
            raise InvalidAssignment(f"The manual partition assignment includes the broker {broker_id} more than once.")
        previous = broker_id


def partition_count_of(assignments: Sequence[tuple[int, Sequence[int]]], registered: frozenset[int]) -> int:
    """How many partitions the assignments of a new topic make; raises InvalidAssignment."""
    replicas_of: dict[int, Sequence[int]] = {}
    for partition_index, broker_ids in assignments:
        if partition_index in replicas_of:
            raise InvalidAssignment(f"Found multiple manual partition assignments for partition {partition_index}")
        check_replicas(broker_ids, registered)
        _check_same_size(replicas_of, broker_ids)
        replicas_of[partition_index] = broker_ids
    if set(replicas_of) != set(range(len(replicas_of))):
        raise InvalidAssignment("partitions should be a consecutive 0-based integer sequence")
    return len(replicas_of)


def _check_same_size(replicas_of: Mapping[int, Sequence[int]], broker_ids: Sequence[int]) -> None:
    first = next(iter(replicas_of.values()), broker_ids)
    if len(first) != len(broker_ids):
        raise InvalidAssignment(
            f"The manual partition assignment includes a partition with {len(broker_ids)} replica(s), but this is not "
            f"consistent with previous partitions, which have {len(first)} replica(s)."
        )
