"""Consumer groups of the classic protocol: membership, rebalances, committed offsets."""

from headgate.broker.state.groups.coordinator import GroupCoordinator
from headgate.broker.state.groups.journal import Journal
from headgate.broker.state.groups.settings import GroupConfig

__all__ = ["GroupConfig", "GroupCoordinator", "Journal"]
