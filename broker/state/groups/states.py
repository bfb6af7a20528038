"""The states of a classic group and their transitions (Kafka's `ClassicGroupState`)."""

from collections.abc import Mapping
from enum import Enum


class GroupState(Enum):
    """The values are the names in ListGroups and DescribeGroups responses."""

    EMPTY = "Empty"
    """No members. Offsets may remain until they expire."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Waits for JoinGroup of all members."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """Waits for SyncGroup of the leader with the assignment."""
    STABLE = "Stable"
    DEAD = "Dead"
    """Deleted. This state is final."""


NEXT_STATES: Mapping[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.COMPLETING_REBALANCE, GroupState.EMPTY, GroupState.DEAD},
    ),
    GroupState.COMPLETING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.DEAD},
    ),
    GroupState.STABLE: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.DEAD: frozenset(),
}
