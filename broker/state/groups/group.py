"""A classic group: members, supported protocols, leader, generation and state.

Corresponds to Kafka's `ClassicGroup`. `rebalance` changes the state. `coordinator` contains all groups.
"""

from collections import Counter
from collections.abc import Iterable

from kio.schema.errors import ErrorCode

from headgate.broker.runtime.clock import Timer
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.state.groups.members import Member
from headgate.broker.state.groups.messages import (
    UNKNOWN_MEMBER_ID,
    GroupDescription,
    JoinedMember,
    JoinResult,
    SyncResult,
)
from headgate.broker.state.groups.outbox import Outbox
from headgate.broker.state.groups.states import NEXT_STATES, GroupState
from headgate.broker.state.groups.subscription import CONSUMER_PROTOCOL_TYPE, subscribed_topics


class Group:
    def __init__(self, group_id: str, now_wall_ms: int, outbox: Outbox) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.previous_state = GroupState.EMPTY
        self.state_since_wall_ms = now_wall_ms
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        """Member id by instance id."""
        self.pending_members: dict[str, Timer] = {}
        """Member ids that were sent with MEMBER_ID_REQUIRED and have not joined yet, with their timeout."""
        self.pending_syncs: set[str] = set()
        """Members of this generation that have not sent SyncGroup."""
        self.topics: frozenset[str] | None = None
        """The topics that the members subscribe to. None if unknown."""
        self.has_grown_during_initial_delay: bool
        self.join_timer: Timer | None = None
        self.sync_timer: Timer | None = None
        self._outbox = outbox
        self._support: Counter[str] = Counter()
        self._awaiting_join_count = 0

    def transition(self, state: GroupState, now_wall_ms: int) -> None:
        if state not in NEXT_STATES[self.state]:
            raise RuntimeError(f"group {self.group_id!r} cannot change from {self.state.value} to {state.value}")
        self.previous_state, self.state = self.state, state
        self.state_since_wall_ms = now_wall_ms

    @property
    def can_rebalance(self) -> bool:
        return GroupState.PREPARING_REBALANCE in NEXT_STATES[self.state]

    @property
    def is_initial_rebalance(self) -> bool:
        return self.state is GroupState.PREPARING_REBALANCE and self.previous_state is GroupState.EMPTY

    def add(self, member: Member) -> None:
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._support.update(member.protocols.keys())
        self.forget_pending(member.member_id)

    def remove(self, member: Member) -> None:
        """Remove a member. Its pending requests get UNKNOWN_MEMBER_ID, so an active client joins again."""
        self.answer_join(member, JoinResult(ErrorCode.unknown_member_id, UNKNOWN_MEMBER_ID))
        self.answer_sync(member, SyncResult(ErrorCode.unknown_member_id))
        del self.members[member.member_id]
        self._support.subtract(member.protocols.keys())
        self._support = +self._support
        if member.group_instance_id is not None:
            self.static_members.pop(member.group_instance_id, None)
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_syncs.discard(member.member_id)

    def replace_static(self, old: Member, member_id: str) -> Member:
        """Give a static member a new member id. Pending requests of the old id get FENCED_INSTANCE_ID."""
        self.answer_join(old, JoinResult(ErrorCode.fenced_instance_id, old.member_id))
        self.answer_sync(old, SyncResult(ErrorCode.fenced_instance_id))
        del self.members[old.member_id]
        new = Member(
            member_id=member_id,
            group_instance_id=old.group_instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            session_timeout_ms=old.session_timeout_ms,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        self.members[member_id] = new
        if self.leader_id == old.member_id:
            self.leader_id = member_id
        if old.group_instance_id is not None:
            self.static_members[old.group_instance_id] = member_id
        if old.member_id in self.pending_syncs:
            self.pending_syncs.discard(old.member_id)
            self.pending_syncs.add(member_id)
        return new

    def update(self, member: Member, protocols: dict[str, bytes], session_timeout_ms: int, rebalance_ms: int) -> None:
        self._support.subtract(member.protocols.keys())
        self._support.update(protocols.keys())
        self._support = +self._support
        member.protocols = protocols
        member.session_timeout_ms = session_timeout_ms
        member.rebalance_timeout_ms = rebalance_ms

    def forget_pending(self, member_id: str) -> bool:
        timer = self.pending_members.pop(member_id, None)
        if timer is not None:
            timer.cancel()
        return timer is not None

    def check_member(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        if group_instance_id is not None:
            owner = self.static_members.get(group_instance_id)
            if owner is None:
                return ErrorCode.unknown_member_id
            if owner != member_id:
                return ErrorCode.fenced_instance_id
        return ErrorCode.none if member_id in self.members else ErrorCode.unknown_member_id

    def await_join(self, member: Member, deferred: Deferred[JoinResult]) -> None:
        """Add a pending JoinGroup. An older one of the same member gets REBALANCE_IN_PROGRESS."""
        self.answer_join(member, JoinResult(ErrorCode.rebalance_in_progress, member.member_id))
        member.awaiting_join = deferred
        self._awaiting_join_count += 1

    def answer_join(self, member: Member, result: JoinResult) -> bool:
        deferred, member.awaiting_join = member.awaiting_join, None
        if deferred is None:
            return False
        self._awaiting_join_count -= 1
        self._outbox.post(deferred, result)
        return True

    def await_sync(self, member: Member, deferred: Deferred[SyncResult]) -> None:
        self.answer_sync(member, SyncResult(ErrorCode.rebalance_in_progress))
        member.awaiting_sync = deferred

    def answer_sync(self, member: Member, result: SyncResult) -> bool:
        deferred, member.awaiting_sync = member.awaiting_sync, None
        if deferred is None:
            return False
        self._outbox.post(deferred, result)
        return True

    @property
    def awaiting_join_count(self) -> int:
        return self._awaiting_join_count

    @property
    def has_all_members_joined(self) -> bool:
        return self._awaiting_join_count == len(self.members) and not self.pending_members

    def supports(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        names = list(protocols)
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(names)
        return self.protocol_type == protocol_type and any(self._support[name] == len(self.members) for name in names)

    def select_protocol(self) -> str:
        """The protocol with the most votes among those that all members support. On a tie, the first vote counts."""
        size = len(self.members)
        votes: Counter[str] = Counter()
        for member in self.members.values():
            choice = next((name for name in member.protocols if self._support[name] == size), None)
            if choice is not None:
                votes[choice] += 1
        if not votes:
            raise RuntimeError(f"the members of group {self.group_id!r} have no common protocol")
        return max(votes, key=lambda name: votes[name])

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it joined again. Otherwise elect a member that joined. False if no member joined."""
        leader = self.members.get(self.leader_id) if self.leader_id is not None else None
        if leader is not None and leader.awaiting_join is not None:
            return True
        successor = next((member for member in self.members.values() if member.awaiting_join is not None), None)
        if successor is None:
            return False
        self.leader_id = successor.member_id
        return True

    def start_generation(self, now_wall_ms: int) -> None:
        self.generation_id = self.generation_id + 1 if self.generation_id < 0x7FFFFFFF else 1
        self.pending_syncs.clear()
        self.protocol_name = self.select_protocol() if self.members else None
        self.learn_topics()
        self.transition(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now_wall_ms)

    def learn_topics(self) -> None:
        self.topics = None
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return
        topics: set[str] = set()
        for member in self.members.values():
            subscription = subscribed_topics(member.metadata(self.protocol_name))
            if subscription is None:
                return
            topics |= subscription
        self.topics = frozenset(topics)

    def is_subscribed_to(self, topic: str) -> bool:
        """True also for a consumer group with an unreadable subscription, because it may include any topic."""
        if self.topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in self.topics

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def joined_members(self) -> list[JoinedMember]:
        return [member.joined(self.protocol_name) for member in self.members.values()]

    def join_result(self, member: Member) -> JoinResult:
        """The JoinGroup result of a member. Only the leader gets the list of members."""
        return JoinResult(
            error=ErrorCode.none,
            member_id=member.member_id,
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader_id or "",
            members=self.joined_members() if self.leader_id == member.member_id else (),
        )

    def sync_result(self, member: Member) -> SyncResult:
        return SyncResult(ErrorCode.none, self.protocol_type, self.protocol_name, member.assignment)

    def describe(self) -> GroupDescription:
        protocol_name = self.protocol_name if self.state is GroupState.STABLE else None
        return GroupDescription(
            group_id=self.group_id,
            state=self.state.value,
            protocol_type=self.protocol_type or "",
            protocol_name=protocol_name or "",
            members=[member.describe(protocol_name) for member in self.members.values()],
        )
