"""SyncGroup: the leader sends the assignment, and each member gets its part (Kafka's `classicGroupSync`)."""

import logging

from kio.schema.errors import ErrorCode

from headgate.broker.runtime.deferred import Deferred
from headgate.broker.state.groups.group import Group
from headgate.broker.state.groups.journal import GroupJournal, answer_for
from headgate.broker.state.groups.messages import SyncRequest, SyncResult
from headgate.broker.state.groups.outbox import Outbox
from headgate.broker.state.groups.rebalance import Rebalance
from headgate.broker.state.groups.states import GroupState

log = logging.getLogger("headgate.broker.groups")


class Syncing:
    def __init__(self, journal: GroupJournal, outbox: Outbox, rebalance: Rebalance) -> None:
        self._journal = journal
        self._outbox = outbox
        self._rebalance = rebalance

    def sync(self, group: Group, request: SyncRequest) -> Deferred[SyncResult]:
        deferred: Deferred[SyncResult] = Deferred()
        error = self._check(group, request)
        if error is not ErrorCode.none:
            self._outbox.post(deferred, SyncResult(error))
            return deferred
        member = group.members[request.member_id]
        self._rebalance.synced(group, member)
        if group.state is GroupState.STABLE:
            self._outbox.post(deferred, group.sync_result(member))
            return deferred
        group.await_sync(member, deferred)
        if group.leader_id == member.member_id:
            self._store_assignment(group, request)
        return deferred

    def _check(self, group: Group, request: SyncRequest) -> ErrorCode:
        if group.state is GroupState.EMPTY:
            return ErrorCode.unknown_member_id
        error = group.check_member(request.member_id, request.group_instance_id)
        if error is not ErrorCode.none:
            return error
        if request.generation_id != group.generation_id:
            return ErrorCode.illegal_generation
        if request.protocol_type not in (None, group.protocol_type):
            return ErrorCode.inconsistent_group_protocol
        if request.protocol_name not in (None, group.protocol_name):
            return ErrorCode.inconsistent_group_protocol
        if group.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.rebalance_in_progress
        return ErrorCode.none

    def _store_assignment(self, group: Group, request: SyncRequest) -> None:
        """Store the generation. The group becomes stable when the generation is durable."""
        generation_id = group.generation_id
        assignments = {
            member_id: request.assignments[member_id] for member_id in group.members if member_id in request.assignments
        }

        def stored(error: ErrorCode) -> None:
            is_current = group.state is GroupState.COMPLETING_REBALANCE and group.generation_id == generation_id
            if is_current and error is ErrorCode.none:
                self._rebalance.complete_sync(group, assignments)
            elif is_current:
                log.error("group %r: storing generation %d failed: %s", group.group_id, generation_id, error.name)
                self._rebalance.cancel_assignment(group, answer_for(error))
                self._rebalance.prepare(group, "storing the assignment failed")
            self._outbox.send()

        self._journal.store(group, assignments).then(stored)
