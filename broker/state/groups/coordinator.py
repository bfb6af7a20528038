"""The group coordinator: all classic groups and their committed offsets.

Each method validates the request, changes the state and returns a result or a `Deferred`. The journal makes changes
durable. The handlers check whether topics exist. The behaviour is that of Kafka 4.3's `GroupCoordinatorService` and
`GroupMetadataManager` for classic groups.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kio.schema.errors import ErrorCode

from headgate.broker.runtime.clock import Clock, Timers
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.state.groups.expiry import expired_partitions
from headgate.broker.state.groups.group import Group
from headgate.broker.state.groups.joining import Joining
from headgate.broker.state.groups.journal import GroupJournal, Journal, answer_for
from headgate.broker.state.groups.loading import Loading
from headgate.broker.state.groups.messages import (
    UNKNOWN_MEMBER_ID,
    CommitRequest,
    GroupDescription,
    JoinRequest,
    JoinResult,
    LeaveResult,
    MemberIdentity,
    PartitionCommit,
    SyncRequest,
    SyncResult,
)
from headgate.broker.state.groups.offsets import Change, Offsets, OffsetsByTopic, TopicPartition
from headgate.broker.state.groups.outbox import Outbox
from headgate.broker.state.groups.rebalance import Rebalance
from headgate.broker.state.groups.records import CommittedOffset, OffsetKey, encode_offset_key, encode_offset_value
from headgate.broker.state.groups.settings import (
    GROUP_ID_BYTES_MAX,
    GROUPS_MAX,
    MEMBER_NAME_BYTES_MAX,
    OFFSET_METADATA_BYTES_MAX,
    GroupConfig,
)
from headgate.broker.state.groups.states import GroupState
from headgate.broker.state.groups.subscription import CONSUMER_PROTOCOL_TYPE
from headgate.broker.state.groups.syncing import Syncing

log = logging.getLogger("headgate.broker.groups")


class GroupCoordinator:
    def __init__(self, clock: Clock, timers: Timers, journal: Journal, settings: GroupConfig) -> None:
        self._clock = clock
        self._timers = timers
        self._config = settings
        self._outbox = Outbox()
        self._journal = GroupJournal(journal)
        self._groups: dict[str, Group] = {}
        self._offsets = Offsets(journal.append)
        self._rebalance = Rebalance(clock, timers, settings, self._journal, self._outbox)
        self._joining = Joining(timers, settings, self._journal, self._outbox, self._rebalance)
        self._syncing = Syncing(self._journal, self._outbox, self._rebalance)
        self._plan_expiry()

    def load(self, entries: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        """Replay the journal, oldest entry first, before the first request. All sessions restart."""
        Loading(self._groups, self._offsets, self._journal, self._outbox).replay(entries, self._clock.wall_ms())
        for group_id in self._offsets.groups():
            self._groups.setdefault(group_id, Group(group_id, self._clock.wall_ms(), self._outbox))
        for group in self._groups.values():
            for member in group.members.values():
                self._rebalance.sessions.renew(group, member)
            if len(group.members) > self._config.group_max_size:
                self._rebalance.prepare(group, "the group has more members than group.max.size")
        self._outbox.send()

    def snapshot(self) -> Iterator[tuple[bytes, bytes]]:
        """Journal entries of the current state, including changes that are not durable yet."""
        yield from self._journal.entries(list(self._groups))
        for key, value in self._offsets.newest():
            yield encode_offset_key(key), encode_offset_value(value)

    def join(self, request: JoinRequest) -> Deferred[JoinResult]:
        error = self._check_join(request)
        group = self._groups.get(request.group_id)
        if error is ErrorCode.none and group is None:
            if request.member_id != UNKNOWN_MEMBER_ID:
                error = ErrorCode.unknown_member_id
            else:
                group, error = self._create(request.group_id)
        if group is None or error is not ErrorCode.none:
            return Deferred.of(JoinResult(error, request.member_id))
        deferred = self._joining.join(group, request)
        self._outbox.send()
        return deferred

    def sync(self, request: SyncRequest) -> Deferred[SyncResult]:
        error = check_group_id(request.group_id)
        group = self._groups.get(request.group_id)
        if group is None or error is not ErrorCode.none:
            return Deferred.of(SyncResult(error if error is not ErrorCode.none else ErrorCode.unknown_member_id))
        deferred = self._syncing.sync(group, request)
        self._outbox.send()
        return deferred

    def heartbeat(self, group_id: str, generation_id: int, member_id: str, group_instance_id: str | None) -> ErrorCode:
        error = check_group_id(group_id)
        if error is not ErrorCode.none:
            return error
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.unknown_member_id
        error = group.check_member(member_id, group_instance_id)
        if error is not ErrorCode.none:
            return error
        if generation_id != group.generation_id:
            return ErrorCode.illegal_generation
        self._rebalance.sessions.renew(group, group.members[member_id])
        is_rebalancing = group.state is GroupState.PREPARING_REBALANCE
        return ErrorCode.rebalance_in_progress if is_rebalancing else ErrorCode.none

    def leave(self, group_id: str, members: Sequence[MemberIdentity]) -> LeaveResult:
        error = check_group_id(group_id)
        if error is not ErrorCode.none:
            return LeaveResult(error)
        group = self._groups.get(group_id)
        if group is None:
            return LeaveResult(ErrorCode.none, [(each, ErrorCode.unknown_member_id) for each in members])
        results = [(each, self._leave_one(group, each)) for each in members]
        if any(result is ErrorCode.none for _, result in results):
            if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
                self._rebalance.prepare(group, "members left")
            else:
                self._rebalance.complete_join_if_all_are_here(group)
        self._outbox.send()
        return LeaveResult(ErrorCode.none, results)

    def commit(self, request: CommitRequest) -> Deferred[Mapping[TopicPartition, ErrorCode]]:
        """Commit offsets. Completes with the error of each partition when the offsets are durable."""
        too_large = [self._is_metadata_too_large(each) for each in request.partitions]
        error = self._admit_commit(request, has_something=not all(too_large))
        if error is not ErrorCode.none:
            return Deferred.of({(each.topic, each.partition): error for each in request.partitions})
        now_ms = self._clock.wall_ms()
        expire_ms = now_ms + request.retention_ms if request.retention_ms is not None else None
        results: dict[TopicPartition, ErrorCode] = {}
        changes: list[Change] = []
        for each, is_too_large in zip(request.partitions, too_large, strict=True):
            if is_too_large:
                results[each.topic, each.partition] = ErrorCode.offset_metadata_too_large
                continue
            results[each.topic, each.partition] = ErrorCode.none
            value = CommittedOffset(each.offset, each.leader_epoch, each.metadata, now_ms, expire_ms)
            changes.append(((each.topic, each.partition), value))
        if not changes:
            return Deferred.of(results)
        answer: Deferred[Mapping[TopicPartition, ErrorCode]] = Deferred()

        def stored(error: ErrorCode) -> None:
            if error is not ErrorCode.none:
                log.error("group %r: storing a commit failed: %s", request.group_id, error.name)
                for partition, result in results.items():
                    results[partition] = answer_for(error) if result is ErrorCode.none else result
            answer.complete(results)

        self._offsets.change(request.group_id, changes).then(stored)
        return answer

    def fetch_offsets(self, group_id: str, require_stable: bool) -> Deferred[OffsetsByTopic]:
        """All durable offsets of a group. `require_stable` waits for pending commits."""
        answer: Deferred[OffsetsByTopic] = Deferred()
        settled = self._offsets.when_settled(group_id) if require_stable else Deferred.of(ErrorCode.none)
        settled.then(lambda _: answer.complete(self._offsets.of_group(group_id)))
        return answer

    def delete_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> Deferred[tuple[ErrorCode, Mapping[TopicPartition, ErrorCode]]]:
        error = check_group_id(group_id)
        group = self._groups.get(group_id)
        if error is ErrorCode.none and group is None:
            error = ErrorCode.group_id_not_found
        if group is not None and group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER_PROTOCOL_TYPE:
            error = ErrorCode.non_empty_group
        if group is None or error is not ErrorCode.none:
            return Deferred.of((error, {}))
        known = self._offsets.known_partitions(group_id)
        results: dict[TopicPartition, ErrorCode] = {}
        for partition in partitions:
            is_subscribed = group.is_subscribed_to(partition[0])
            results[partition] = ErrorCode.group_subscribed_to_topic if is_subscribed else ErrorCode.none
        deletions = [key for key, result in results.items() if result is ErrorCode.none and key in known]
        answer: Deferred[tuple[ErrorCode, Mapping[TopicPartition, ErrorCode]]] = Deferred()

        def stored(error: ErrorCode) -> None:
            answer.complete((answer_for(error), results if error is ErrorCode.none else {}))

        self._delete(group_id, deletions).then(stored)
        return answer

    def describe(self, group_id: str) -> GroupDescription | None:
        group = self._groups.get(group_id)
        return group.describe() if group is not None else None

    def all(self) -> list[GroupDescription]:
        return [group.describe() for group in self._groups.values()]

    def delete(self, group_id: str) -> Deferred[ErrorCode]:
        group = self._groups.get(group_id)
        if group is None:
            return Deferred.of(ErrorCode.group_id_not_found)
        if group.state is not GroupState.EMPTY:
            return Deferred.of(ErrorCode.non_empty_group)
        answer: Deferred[ErrorCode] = Deferred()
        self._drop(group).then(lambda error: answer.complete(answer_for(error)))
        return answer

    def on_topic_deleted(self, topic: str) -> None:
        """Delete the offsets of a topic. Otherwise a new topic with the same name would get them."""
        for group_id in self._offsets.groups_with(topic):
            gone = [each for each in self._offsets.known_partitions(group_id) if each[0] == topic]
            self._delete(group_id, gone).then(self._log_failure)

    def forget_topics(self, exists: Callable[[str], bool]) -> None:
        """Delete the offsets of unknown topics. Call this after `load`: a crash may have interrupted a deletion."""
        for group_id in list(self._offsets.groups()):
            gone = [each for each in self._offsets.known_partitions(group_id) if not exists(each[0])]
            if gone:
                self._delete(group_id, gone).then(self._log_failure)

    def limit_offsets(self, end_offset: Callable[[str, int], int | None]) -> None:
        """Reset offsets that are beyond the end of their log to the end of the log. Call this after `load`.

        A power failure can remove records with acks=1 that were already read and committed. New records get the same
        offsets, and the group would skip them.
        """
        for group_id in list(self._offsets.groups()):
            changes: list[Change] = []
            for topic, partitions in self._offsets.of_group(group_id).items():
                for partition, committed in partitions.items():
                    end = end_offset(topic, partition)
                    if end is not None and committed.offset > end:
                        log.warning(
                            "group %r: the offset of %s-%d is reset from %d to the end of the log, %d",
                            group_id, topic, partition, committed.offset, end,
                        )  # fmt: skip
                        changes.append(((topic, partition), replace(committed, offset=end, leader_epoch=-1)))
            if changes:
                for (topic, partition), value in changes:
                    # Apply the change at once. Clients must not read the old offset before the journal is written.
                    self._offsets.replay(OffsetKey(group_id, topic, partition), value)
                self._offsets.change(group_id, changes).then(self._log_failure)

    def expire(self) -> None:
        """Delete expired offsets, and empty groups without offsets."""
        now_ms = self._clock.wall_ms()
        retention_ms = self._config.offsets_retention_minutes * 60_000
        for group in list(self._groups.values()):
            expired = list(expired_partitions(group, self._offsets, now_ms, retention_ms))
            is_idle = group.state is GroupState.EMPTY and not group.pending_members
            if is_idle and set(expired) == self._offsets.known_partitions(group.group_id):
                self._drop(group).then(self._log_failure)
            elif expired:
                self._delete(group.group_id, expired).then(self._log_failure)

    def _plan_expiry(self) -> None:
        def run() -> None:
            self._plan_expiry()
            self.expire()

        self._timers.after(self._config.offsets_retention_check_interval_ms, run)

    def _create(self, group_id: str) -> tuple[Group | None, ErrorCode]:
        if len(self._groups) >= GROUPS_MAX:
            log.error("cannot create group %r: there are already %d groups", group_id, len(self._groups))
            return None, ErrorCode.coordinator_not_available
        group = self._groups[group_id] = Group(group_id, self._clock.wall_ms(), self._outbox)
        return group, ErrorCode.none

    def _drop(self, group: Group) -> Deferred[ErrorCode]:
        group_id = group.group_id
        self._rebalance.stop(group)
        group.transition(GroupState.DEAD, self._clock.wall_ms())
        del self._groups[group_id]
        partitions = self._offsets.known_partitions(group_id)
        tombstone = self._journal.tombstone(group_id)
        return self._offsets.change(group_id, [(each, None) for each in partitions], [tombstone])

    def _delete(self, group_id: str, partitions: Iterable[TopicPartition]) -> Deferred[ErrorCode]:
        changes: list[Change] = [(each, None) for each in partitions]
        return self._offsets.change(group_id, changes) if changes else Deferred.of(ErrorCode.none)

    def _log_failure(self, error: ErrorCode) -> None:
        if error is not ErrorCode.none:
            log.error("groups journal: storing a deletion failed: %s", error.name)

    def _check_join(self, request: JoinRequest) -> ErrorCode:
        error = check_group_id(request.group_id)
        if error is not ErrorCode.none:
            return error
        config = self._config
        if not (
            config.group_min_session_timeout_ms <= request.session_timeout_ms <= config.group_max_session_timeout_ms
        ):
            return ErrorCode.invalid_session_timeout
        if request.group_instance_id is not None and is_too_long(request.group_instance_id):
            return ErrorCode.invalid_request
        if is_too_long(request.protocol_type) or any(is_too_long(name) for name in request.protocols):
            return ErrorCode.inconsistent_group_protocol
        return ErrorCode.none

    def _leave_one(self, group: Group, identity: MemberIdentity) -> ErrorCode:
        member_id = identity.member_id
        if member_id == UNKNOWN_MEMBER_ID:
            # Administrators remove a static member by its instance id alone.
            owner = group.static_members.get(identity.group_instance_id or "")
            if identity.group_instance_id is None or owner is None:
                return ErrorCode.unknown_member_id
            member_id = owner
        elif member_id in group.pending_members:
            group.forget_pending(member_id)
            return ErrorCode.none
        else:
            error = group.check_member(member_id, identity.group_instance_id)
            if error is not ErrorCode.none:
                return error
        self._rebalance.forget(group, group.members[member_id])
        return ErrorCode.none

    def _admit_commit(self, request: CommitRequest, *, has_something: bool) -> ErrorCode:
        """Check whether the client may commit. Creates the group if there are offsets to store."""
        group = self._groups.get(request.group_id)
        if group is None:
            if len(request.group_id.encode()) > GROUP_ID_BYTES_MAX:
                return ErrorCode.invalid_group_id
            if request.generation_id >= 0:
                return request.unknown_group_error
            # A consumer with manual assignment, or an administrator: the group only contains offsets.
            return self._create(request.group_id)[1] if has_something else ErrorCode.none
        if request.generation_id < 0 and group.state is GroupState.EMPTY:
            return ErrorCode.none
        is_anonymous = (
            request.generation_id < 0 and request.member_id == UNKNOWN_MEMBER_ID and request.group_instance_id is None
        )
        if is_anonymous:
            return ErrorCode.unknown_member_id
        error = group.check_member(request.member_id, request.group_instance_id)
        if error is not ErrorCode.none:
            return error
        if request.generation_id != group.generation_id:
            return ErrorCode.illegal_generation
        if group.state is GroupState.COMPLETING_REBALANCE:
            # The member knows the new generation and must wait for its assignment before it commits.
            return ErrorCode.rebalance_in_progress
        self._rebalance.sessions.renew(group, group.members[request.member_id])
        return ErrorCode.none

    def _is_metadata_too_large(self, commit: PartitionCommit) -> bool:
        # Kafka counts UTF-16 code units, like Java strings.
        units = len(commit.metadata) + sum(character > "\uffff" for character in commit.metadata)
        return (
            units > self._config.offset_metadata_max_bytes or len(commit.metadata.encode()) > OFFSET_METADATA_BYTES_MAX
        )


def check_group_id(group_id: str) -> ErrorCode:
    is_valid = bool(group_id) and len(group_id.encode()) <= GROUP_ID_BYTES_MAX
    return ErrorCode.none if is_valid else ErrorCode.invalid_group_id


def is_too_long(name: str) -> bool:
    return len(name.encode()) > MEMBER_NAME_BYTES_MAX
