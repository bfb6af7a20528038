"""The two phases of a rebalance: all members join, then the leader sends the assignment.

Changes the state of groups, runs the timeouts of both phases, and removes members that miss them. `joining` and
`syncing` handle the requests. Corresponds to Kafka's `GroupMetadataManager`.
"""

import logging
from collections.abc import Callable

from kio.schema.errors import ErrorCode

from headgate.broker.runtime.clock import Clock, Timers
from headgate.broker.state.groups.group import Group
from headgate.broker.state.groups.journal import GroupJournal
from headgate.broker.state.groups.members import Member
from headgate.broker.state.groups.messages import SyncResult
from headgate.broker.state.groups.outbox import Outbox
from headgate.broker.state.groups.sessions import Sessions
from headgate.broker.state.groups.settings import REJOIN_RETRY_MS_MIN, GroupConfig
from headgate.broker.state.groups.states import GroupState

log = logging.getLogger("headgate.broker.groups")


class Rebalance:
    def __init__(
        self, clock: Clock, timers: Timers, config: GroupConfig, journal: GroupJournal, outbox: Outbox
    ) -> None:
        self._clock = clock
        self._timers = timers
        self._config = config
        self._journal = journal
        self._outbox = outbox
        self.sessions = Sessions(clock, timers, self._on_session_expired)

    def prepare_or_complete(self, group: Group, reason: str) -> None:
        """The members changed: start a rebalance, or complete the current one if all members have joined."""
        if group.can_rebalance:
            self.prepare(group, reason)
        else:
            self.complete_join_if_all_are_here(group)

    def prepare(self, group: Group, reason: str) -> None:
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.cancel_assignment(group, ErrorCode.rebalance_in_progress)
        self._stop_waiting_for_syncs(group)
        is_initial = group.state is GroupState.EMPTY
        group.transition(GroupState.PREPARING_REBALANCE, self._clock.wall_ms())
        log.info("group %r: rebalance of generation %d: %s", group.group_id, group.generation_id, reason)
        if is_initial:
            delay_ms = self._config.group_initial_rebalance_delay_ms
            left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            group.has_grown_during_initial_delay = False
            self._plan_join(group, delay_ms, lambda: self._end_initial_delay(group, delay_ms, left_ms))
        elif group.has_all_members_joined:
            self.complete_join(group)
        else:
            self._plan_join(group, group.rebalance_timeout_ms, lambda: self._on_join_timeout(group))

    def complete_join_if_all_are_here(self, group: Group) -> None:
        if (
            group.state is GroupState.PREPARING_REBALANCE
            and not group.is_initial_rebalance
            and group.has_all_members_joined
        ):
            self.complete_join(group)

    def complete_join(self, group: Group) -> None:
        """End the join phase. Dynamic members that did not join are removed. Static members stay until they expire."""
        self._cancel_join_timer(group)
        late = [member for member in group.members.values() if member.awaiting_join is None and not member.is_static]
        for member in late:
            self.forget(group, member)
        if late:
            log.info(
                "group %r: removed members that did not join in time: %s",
                group.group_id,
                [member.member_id for member in late],
            )

        if group.members and not group.elect_joined_leader():
            log.warning(
                "group %r: no member joined; waiting for the session timeouts of static members", group.group_id
            )
            retry_ms = max(group.rebalance_timeout_ms, REJOIN_RETRY_MS_MIN)
            self._plan_join(group, retry_ms, lambda: self._on_join_timeout(group))
            return

        group.start_generation(self._clock.wall_ms())
        if not group.members:
            log.info("group %r: generation %d is empty", group.group_id, group.generation_id)
            self._store_empty(group)
            return
        log.info("group %r: generation %d has %d members", group.group_id, group.generation_id, len(group.members))
        for member in group.members.values():
            group.answer_join(member, group.join_result(member))
            self.sessions.renew(group, member)
            member.is_new = False
            group.pending_syncs.add(member.member_id)
        generation_id = group.generation_id
        group.sync_timer = self._timers.after(
            max(group.rebalance_timeout_ms, 0), lambda: self._on_sync_timeout(group, generation_id)
        )

    def synced(self, group: Group, member: Member) -> None:
        group.pending_syncs.discard(member.member_id)
        if not group.pending_syncs:
            self._stop_waiting_for_syncs(group)

    def cancel_assignment(self, group: Group, error: ErrorCode) -> None:
        for member in group.members.values():
            member.assignment = b""
        self._answer_syncs(group, error)

    def complete_sync(self, group: Group, assignments: dict[str, bytes]) -> None:
        """End the sync phase: the assignment is durable, and each member gets its part."""
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        group.transition(GroupState.STABLE, self._clock.wall_ms())
        self._answer_syncs(group, ErrorCode.none)

    def forget(self, group: Group, member: Member) -> None:
        self.sessions.end(member)
        group.remove(member)

    def members_left(self, group: Group, reason: str) -> None:
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self.prepare(group, reason)
        elif group.state is GroupState.PREPARING_REBALANCE and group.has_all_members_joined:
            self.complete_join(group)

    def remove_pending(self, group: Group, member_id: str) -> None:
        """Remove a member id that was never used, so that the rebalance does not wait for it."""
        group.forget_pending(member_id)
        if group.state is GroupState.PREPARING_REBALANCE and group.has_all_members_joined:
            self.complete_join(group)

    def stop(self, group: Group) -> None:
        self._cancel_join_timer(group)
        self._stop_waiting_for_syncs(group)
        for member_id in list(group.pending_members):
            group.forget_pending(member_id)
        for member in group.members.values():
            self.sessions.end(member)

    def _plan_join(self, group: Group, delay_ms: int, callback: Callable[[], None]) -> None:
        self._cancel_join_timer(group)
        group.join_timer = self._timers.after(max(delay_ms, 0), callback)

    def _cancel_join_timer(self, group: Group) -> None:
        if group.join_timer is not None:
            group.join_timer.cancel()
            group.join_timer = None

    def _stop_waiting_for_syncs(self, group: Group) -> None:
        group.pending_syncs.clear()
        if group.sync_timer is not None:
            group.sync_timer.cancel()
            group.sync_timer = None

    def _answer_syncs(self, group: Group, error: ErrorCode) -> None:
        for member in group.members.values():
            result = group.sync_result(member) if error is ErrorCode.none else SyncResult(error)
            if group.answer_sync(member, result):
                # The session may have expired while the request was pending.
                self.sessions.renew(group, member)

    def _store_empty(self, group: Group) -> None:
        def stored(error: ErrorCode) -> None:
            if error is not ErrorCode.none:
                # After a restart, the members of the previous generation expire.
                log.warning("group %r: storing the empty generation failed: %s", group.group_id, error.name)

        self._journal.store(group, {}).then(stored)

    def _end_initial_delay(self, group: Group, delay_ms: int, left_ms: int) -> None:
        if group.has_grown_during_initial_delay and left_ms > 0:
            group.has_grown_during_initial_delay = False
            next_delay_ms = min(self._config.group_initial_rebalance_delay_ms, left_ms)
            next_left_ms = max(left_ms - delay_ms, 0)
            self._plan_join(group, next_delay_ms, lambda: self._end_initial_delay(group, next_delay_ms, next_left_ms))
        else:
            self._on_join_timeout(group)

    def _on_join_timeout(self, group: Group) -> None:
        if group.state is GroupState.PREPARING_REBALANCE:
            self.complete_join(group)
        self._outbox.send()

    def _on_sync_timeout(self, group: Group, generation_id: int) -> None:
        group.sync_timer = None
        if group.generation_id == generation_id and group.pending_syncs and group.can_rebalance:
            late = [group.members[member_id] for member_id in group.pending_syncs]
            for member in late:
                self.forget(group, member)
            self.prepare(group, f"{len(late)} members did not send SyncGroup")
        self._outbox.send()

    def _on_session_expired(self, group: Group, member: Member) -> None:
        if group.state is not GroupState.DEAD:
            log.info("group %r: the session of member %r expired", group.group_id, member.member_id)
            self.forget(group, member)
            self.members_left(group, f"the session of {member.member_id} expired")
        self._outbox.send()
