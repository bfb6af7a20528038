"""JoinGroup: admits members, assigns member ids and starts rebalances.

Corresponds to Kafka's `GroupMetadataManager.classicGroupJoin`. Implements KIP-345 (static members), KIP-394 (member id
required) and KIP-814 (static leaders skip the assignment).
"""

import logging
from dataclasses import replace

from kio.schema.errors import ErrorCode

from headgate.broker.runtime.clock import Timers
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.state.groups.group import Group
from headgate.broker.state.groups.journal import GroupJournal, answer_for
from headgate.broker.state.groups.members import Member
from headgate.broker.state.groups.messages import UNKNOWN_MEMBER_ID, JoinRequest, JoinResult
from headgate.broker.state.groups.outbox import Outbox
from headgate.broker.state.groups.rebalance import Rebalance
from headgate.broker.state.groups.settings import (
    MEMBERS_MAX,
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    PENDING_MEMBERS_MAX,
    GroupConfig,
)
from headgate.broker.state.groups.states import GroupState

log = logging.getLogger("headgate.broker.groups")


class Joining:
    def __init__(
        self, timers: Timers, config: GroupConfig, journal: GroupJournal, outbox: Outbox, rebalance: Rebalance
    ) -> None:
        self._timers = timers
        self._config = config
        self._journal = journal
        self._outbox = outbox
        self._rebalance = rebalance

    def join(self, group: Group, request: JoinRequest) -> Deferred[JoinResult]:
        deferred: Deferred[JoinResult] = Deferred()
        if not self._has_room(group, request.member_id):
            self._remove_rejected(group, request.member_id)
            self._reject(deferred, ErrorCode.group_max_size_reached, UNKNOWN_MEMBER_ID)
        elif not group.supports(request.protocol_type, request.protocols):
            self._reject(deferred, ErrorCode.inconsistent_group_protocol, request.member_id)
        elif request.member_id == UNKNOWN_MEMBER_ID:
            self._join_as_new(group, request, deferred)
        else:
            self._rejoin(group, request, deferred)
        return deferred

    def _reject(self, deferred: Deferred[JoinResult], error: ErrorCode, member_id: str) -> None:
        self._outbox.post(deferred, JoinResult(error, member_id))

    def _has_room(self, group: Group, member_id: str) -> bool:
        members_max = min(self._config.group_max_size, MEMBERS_MAX)
        member = group.members.get(member_id)
        if group.state is GroupState.EMPTY:
            return True
        if group.state is GroupState.PREPARING_REBALANCE:
            # The limit may have been lowered. Count the members that have joined, so that the last ones are rejected.
            is_waiting = member is not None and member.awaiting_join is not None
            return is_waiting or group.awaiting_join_count < members_max
        return member is not None or len(group.members) < members_max

    def _remove_rejected(self, group: Group, member_id: str) -> None:
        member = group.members.get(member_id)
        if member is not None:
            self._rebalance.forget(group, member)
            self._rebalance.members_left(group, "the group is full")
        elif group.forget_pending(member_id):
            self._rebalance.complete_join_if_all_are_here(group)

    def _join_as_new(self, group: Group, request: JoinRequest, deferred: Deferred[JoinResult]) -> None:
        member_id = request.new_member_id()
        if request.group_instance_id is not None:
            previous_id = group.static_members.get(request.group_instance_id)
            if previous_id is None:
                self._add(group, request, member_id, deferred)
            else:
                self._replace(group, request, group.members[previous_id], member_id, deferred)
        elif not request.member_id_required:
            self._add(group, request, member_id, deferred)
        elif len(group.pending_members) >= PENDING_MEMBERS_MAX:
            self._reject(deferred, ErrorCode.group_max_size_reached, UNKNOWN_MEMBER_ID)
        else:
            group.pending_members[member_id] = self._timers.after(
                request.session_timeout_ms, lambda: self._on_pending_timeout(group, member_id)
            )
            self._reject(deferred, ErrorCode.member_id_required, member_id)

    def _on_pending_timeout(self, group: Group, member_id: str) -> None:
        self._rebalance.remove_pending(group, member_id)
        self._outbox.send()

    def _rejoin(self, group: Group, request: JoinRequest, deferred: Deferred[JoinResult]) -> None:
        member_id = request.member_id
        if member_id in group.pending_members and request.group_instance_id is None:
            self._add(group, request, member_id, deferred)
            return
        error = group.check_member(member_id, request.group_instance_id)
        if error is not ErrorCode.none:
            self._reject(deferred, error, member_id)
            return
        member = group.members[member_id]
        is_unchanged = member.supports_the_same_as(request.protocols)
        if group.state is GroupState.COMPLETING_REBALANCE and is_unchanged:
            # The client did not receive the response. The generation has not changed.
            self._outbox.post(deferred, group.join_result(member))
        elif group.state is GroupState.STABLE and is_unchanged and group.leader_id != member_id:
            self._outbox.post(deferred, replace(group.join_result(member), members=()))
        else:
            # The leader of a stable group joins again to start a rebalance, for example after a topic got more
            # partitions. The metadata of the members does not show this.
            group.update(member, request.protocols, request.session_timeout_ms, request.rebalance_timeout_ms)
            group.await_join(member, deferred)
            self._rebalance.prepare_or_complete(group, f"{member_id} joined again")

    def _add(self, group: Group, request: JoinRequest, member_id: str, deferred: Deferred[JoinResult]) -> None:
        member = Member.from_request(request, member_id)
        if not group.members:
            group.protocol_type = request.protocol_type
        if group.is_initial_rebalance:
            group.has_grown_during_initial_delay = True
        group.add(member)
        group.await_join(member, deferred)
        # The broker cannot distinguish a closed client from a waiting one. The client may return as a new member.
        self._rebalance.sessions.renew(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalance.prepare_or_complete(group, f"{member_id} joined")

    def _replace(
        self, group: Group, request: JoinRequest, old: Member, member_id: str, deferred: Deferred[JoinResult]
    ) -> None:
        """A static member joins again without its member id, and gets a new one."""
        previous_leader_id = group.leader_id
        log.info("group %r: member id %r replaces %r of a static member", group.group_id, member_id, old.member_id)
        self._rebalance.sessions.end(old)
        member = group.replace_static(old, member_id)
        group.update(member, request.protocols, request.session_timeout_ms, request.rebalance_timeout_ms)
        group.await_join(member, deferred)
        self._rebalance.sessions.renew(group, member)
        if group.state is GroupState.STABLE and group.select_protocol() == group.protocol_name:
            self._keep_generation(group, request, member, previous_leader_id)
        elif group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            # The leader may be computing an assignment for the old id. The new id would get no partitions.
            self._rebalance.prepare(group, f"static member {member_id} joined again")
        else:
            self._rebalance.complete_join_if_all_are_here(group)

    def _keep_generation(
        self, group: Group, request: JoinRequest, member: Member, previous_leader_id: str | None
    ) -> None:
        """Store the new id of an unchanged static member and return the current generation, without a rebalance."""

        def stored(error: ErrorCode) -> None:
            current = group.join_result(member)
            if error is not ErrorCode.none:
                result = replace(current, error=answer_for(error), member_id=UNKNOWN_MEMBER_ID, members=())
            elif request.may_skip_assignment:
                result = replace(current, skip_assignment=group.leader_id == member.member_id)
            else:
                # Return the old member id as leader. Then the client acts as a follower and computes no assignment.
                result = replace(current, leader=previous_leader_id or "", members=())
            if group.answer_join(member, result):
                self._rebalance.sessions.renew(group, member)
            self._outbox.send()

        assignments = {each.member_id: each.assignment for each in group.members.values()}
        self._journal.store(group, assignments).then(stored)
