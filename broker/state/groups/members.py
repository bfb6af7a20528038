"""A member of a classic group: identity, supported protocols and pending requests."""

from dataclasses import dataclass, field

from headgate.broker.runtime.clock import Timer
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.state.groups.messages import JoinedMember, JoinRequest, JoinResult, MemberDescription, SyncResult


@dataclass(slots=True, eq=False)
class Member:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: dict[str, bytes]
    assignment: bytes = b""
    is_new: bool = False
    """The member waits for its first JoinGroup response and cannot send heartbeats yet."""
    awaiting_join: Deferred[JoinResult] | None = None
    awaiting_sync: Deferred[SyncResult] | None = None
    session_deadline_ms: int = 0
    session_timer: Timer | None = field(default=None, repr=False)

    @classmethod
    def from_request(cls, request: JoinRequest, member_id: str) -> "Member":
        return cls(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            protocols=request.protocols,
            is_new=True,
        )

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_held_by_a_rebalance(self) -> bool:
        """A member with a pending request counts as active, unless it is new."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def supports_the_same_as(self, protocols: dict[str, bytes]) -> bool:
        return list(self.protocols.items()) == list(protocols.items())

    def joined(self, protocol_name: str | None) -> JoinedMember:
        return JoinedMember(self.member_id, self.group_instance_id, self.metadata(protocol_name))

    def metadata(self, protocol_name: str | None) -> bytes:
        return self.protocols.get(protocol_name, b"") if protocol_name is not None else b""

    def describe(self, protocol_name: str | None) -> MemberDescription:
        """Without a protocol name (during a rebalance), the metadata is empty. The assignment is the last one."""
        return MemberDescription(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.metadata(protocol_name),
            self.assignment,
        )
