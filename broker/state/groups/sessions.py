"""Session timeouts: reports members that send no heartbeat in time.

Heartbeats are much more frequent than expired sessions. Therefore a heartbeat only changes the deadline of the member.
The timer of the member checks the deadline when it fires, and waits again if the deadline has changed.
"""

from collections.abc import Callable

from headgate.broker.runtime.clock import Clock, Timers
from headgate.broker.state.groups.group import Group
from headgate.broker.state.groups.members import Member


class Sessions:
    def __init__(self, clock: Clock, timers: Timers, on_expired: Callable[[Group, Member], None]) -> None:
        self._clock = clock
        self._timers = timers
        self._on_expired = on_expired

    def renew(self, group: Group, member: Member, timeout_ms: int | None = None) -> None:
        timeout_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        member.session_deadline_ms = self._clock.monotonic_ms() + timeout_ms
        timer = member.session_timer
        if timer is None or timer.callback is None or timer.deadline_ms > member.session_deadline_ms:
            self.end(member)
            self._arm(group, member, timeout_ms)

    def end(self, member: Member) -> None:
        if member.session_timer is not None:
            member.session_timer.cancel()
            member.session_timer = None

    def _arm(self, group: Group, member: Member, timeout_ms: int) -> None:
        member.session_timer = self._timers.after(timeout_ms, lambda: self._on_timer(group, member))

    def _on_timer(self, group: Group, member: Member) -> None:
        member.session_timer = None
        left_ms = member.session_deadline_ms - self._clock.monotonic_ms()
        if left_ms > 0:
            self._arm(group, member, left_ms)
        elif group.members.get(member.member_id) is member and not member.is_held_by_a_rebalance:
            self._on_expired(group, member)
