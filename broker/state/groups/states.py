"""The life of a classic group, as a table (Kafka's `ClassicGroupState`)."""

from collections.abc import Mapping
from enum import Enum


class GroupState(Enum):
    """The values are the names that ListGroups and DescribeGroups show."""

    EMPTY = "Empty"
    """No members. Offsets may remain until they expire."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Waits for every member to send JoinGroup."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """Waits for the leader to send the assignment with SyncGroup."""
    STABLE = "Stable"
    DEAD = "Dead"
    """Deleted; nothing leads out of here."""


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
