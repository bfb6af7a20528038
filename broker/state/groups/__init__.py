"""Consumer groups of the classic protocol: membership, rebalances, committed offsets."""

from broker.state.groups.coordinator import GroupCoordinator
from broker.state.groups.journal import Journal
from broker.state.groups.settings import GroupConfig, GroupSettings

__all__ = ["GroupConfig", "GroupCoordinator", "GroupSettings", "Journal"]
