"""A group coordinator with a manual clock and a manual journal, and shortcuts for requests."""

import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from kio.schema.errors import ErrorCode

from headgate.broker.runtime.clock import Timers
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.state.groups.coordinator import GroupCoordinator
from headgate.broker.state.groups.journal import Entry
from headgate.broker.state.groups.messages import (
    CommitRequest,
    GroupDescription,
    JoinRequest,
    JoinResult,
    MemberIdentity,
    PartitionCommit,
    SyncRequest,
    SyncResult,
)
from headgate.broker.state.groups.records import CommittedOffset
from tests.manual_clock import ManualClock
from tests.unit.broker.groups.group_settings import GroupSettings

T = TypeVar("T")

GROUP = "group"
SESSION_MS = 10_000
REBALANCE_MS = 30_000


def subscription(*topics: str) -> bytes:
    """Encode ConsumerProtocolSubscription, version 0."""
    names = b"".join(len(topic).to_bytes(2) + topic.encode() for topic in topics)
    return (0).to_bytes(2) + len(topics).to_bytes(4) + names + (-1).to_bytes(4, signed=True)


class ManualJournal:
    """Stores appended entries. If `lands_at_once` is false, entries become durable when the test calls `land`."""

    def __init__(self) -> None:
        self.lands_at_once = True
        self.error = ErrorCode.none
        self.durable: list[Entry] = []
        self._waiting: deque[tuple[Sequence[Entry], Deferred[ErrorCode]]] = deque()

    def append(self, entries: Sequence[Entry]) -> Deferred[ErrorCode]:
        deferred: Deferred[ErrorCode] = Deferred()
        self._waiting.append((list(entries), deferred))
        if self.lands_at_once:
            self.land()
        return deferred

    def land(self, count: int | None = None) -> None:
        for _ in range(len(self._waiting) if count is None else count):
            entries, deferred = self._waiting.popleft()
            if self.error is ErrorCode.none:
                self.durable += entries
            deferred.complete(self.error)

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)


@dataclass
class Cluster:
    settings: GroupSettings = field(default_factory=GroupSettings)
    journal: ManualJournal = field(default_factory=ManualJournal)
    clock: ManualClock = field(default_factory=ManualClock)

    def __post_init__(self) -> None:
        self.timers = Timers(self.clock)
        self.groups = GroupCoordinator(self.clock, self.timers, self.journal, self.settings)

    def restarted(self) -> "Cluster":
        """Return a new broker that loads the durable entries."""
        other = Cluster(self.settings, ManualJournal(), self.clock)
        other.journal.durable = list(self.journal.durable)
        other.groups.load(self.journal.durable)
        return other

    def advance(self, milliseconds: int) -> None:
        """Advance the clock in small steps, so that timers fire in order and close to their deadline."""
        while milliseconds > 0:
            step = min(milliseconds, 250)
            self.clock.advance(step)
            self.timers.run_due()
            milliseconds -= step

    def tick(self) -> None:
        self.timers.run_due()

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: Mapping[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        version: int = 3,
        group: str = GROUP,
    ) -> Deferred[JoinResult]:
        return self.groups.join(
            JoinRequest(
                group_id=group,
                member_id=member_id,
                group_instance_id=instance,
                client_id="client",
                client_host="/127.0.0.1",
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=rebalance_ms,
                protocol_type=protocol_type,
                protocols=dict({"range": subscription("topic")} if protocols is None else protocols),
                member_id_required=version >= 4,
                may_skip_assignment=version >= 9,
                unique_id=uuid.uuid4(),
            )
        )

    def sync(
        self,
        member_id: str,
        generation_id: int,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        group: str = GROUP,
    ) -> Deferred[SyncResult]:
        return self.groups.sync(
            SyncRequest(
                group, generation_id, member_id, instance, protocol_type, protocol_name, dict(assignments or {})
            )
        )

    def heartbeat(self, member_id: str, generation_id: int, instance: str | None = None) -> ErrorCode:
        return self.groups.heartbeat(GROUP, generation_id, member_id, instance)

    def leave(self, member_id: str = "", instance: str | None = None) -> ErrorCode:
        result = self.groups.leave(GROUP, [MemberIdentity(member_id, instance)])
        return result.members[0][1] if result.members else result.error

    def start_commit(
        self,
        offset: int,
        *,
        member_id: str = "",
        generation_id: int = -1,
        instance: str | None = None,
        topic: str = "topic",
        partition: int = 0,
        metadata: str = "",
        retention_ms: int | None = None,
        group: str = GROUP,
    ) -> Deferred[Mapping[tuple[str, int], ErrorCode]]:
        commit = PartitionCommit(topic, partition, offset, -1, metadata)
        return self.groups.commit(
            CommitRequest(
                group, member_id, instance, generation_id, retention_ms, ErrorCode.illegal_generation, [commit]
            )
        )

    def commit(self, offset: int, *, topic: str = "topic", member_id: str = "", generation_id: int = -1) -> ErrorCode:
        results = result_of(self.start_commit(offset, topic=topic, member_id=member_id, generation_id=generation_id))
        return results[topic, 0]

    def offsets(self, group: str = GROUP) -> Mapping[tuple[str, int], CommittedOffset]:
        topics = result_of(self.groups.fetch_offsets(group, require_stable=False))
        return {(topic, partition): value for topic, parts in topics.items() for partition, value in parts.items()}

    def committed(self, topic: str = "topic") -> int | None:
        value = self.offsets().get((topic, 0))
        return value.offset if value is not None else None

    def describe(self, group: str = GROUP) -> GroupDescription:
        description = self.groups.describe(group)
        assert description is not None
        return description

    @property
    def state(self) -> str:
        return self.describe().state

    def stable_member(self, **how: str) -> JoinResult:
        """Create a stable group with one member."""
        joined = self.join(instance=how.get("instance"))
        self.tick()
        result = result_of(joined)
        assert result.error is ErrorCode.none
        synced = self.sync(result.member_id, result.generation_id, {result.member_id: b"all"})
        assert result_of(synced).assignment == b"all"
        return result

    def stable_pair(self, rebalance_ms: int = REBALANCE_MS) -> tuple[JoinResult, JoinResult]:
        """Create a stable group with a leader and a follower."""
        leader_joins = self.join(rebalance_ms=rebalance_ms)
        follower_joins = self.join(rebalance_ms=rebalance_ms)
        self.tick()
        leader, follower = result_of(leader_joins), result_of(follower_joins)
        follower_syncs = self.sync(follower.member_id, follower.generation_id)
        assignments = {leader.member_id: b"of the leader", follower.member_id: b"of the follower"}
        leader_syncs = self.sync(leader.member_id, leader.generation_id, assignments)
        assert result_of(leader_syncs).assignment == b"of the leader"
        assert result_of(follower_syncs).assignment == b"of the follower"
        return leader, follower


def result_of(deferred: Deferred[T]) -> T:
    assert deferred.done, "not answered yet"
    results: list[T] = []
    deferred.then(results.append)
    return results[0]
