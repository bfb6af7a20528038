"""The requests and results of the coordinator, independent of API versions."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from headgate.broker.state.groups.settings import CLIENT_ID_CHARACTERS_IN_MEMBER_ID_MAX

UNKNOWN_MEMBER_ID = ""
"""The member id in the JoinGroup request of a new member."""

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class JoinRequest:
    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: dict[str, bytes]
    """Metadata by protocol name, most preferred first."""
    member_id_required: bool
    """From version 4 on, a new dynamic member first gets its member id and then joins with it (KIP-394)."""
    may_skip_assignment: bool
    """From version 9 on, a static leader that joins again can skip the assignment (KIP-814)."""

    unique_id: uuid.UUID
    """Random. It is the end of the id of a new member."""

    def new_member_id(self) -> str:
        name = self.group_instance_id
        if name is None:
            name = self.client_id[:CLIENT_ID_CHARACTERS_IN_MEMBER_ID_MAX]
        return f"{name}-{self.unique_id}"


@dataclass(frozen=True, slots=True)
class JoinedMember:
    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinResult:
    error: ErrorCode
    member_id: str
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: Sequence[JoinedMember] = ()


@dataclass(frozen=True, slots=True)
class SyncRequest:
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class SyncResult:
    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class MemberIdentity:
    member_id: str
    group_instance_id: str | None


@dataclass(frozen=True, slots=True)
class LeaveResult:
    error: ErrorCode
    members: Sequence[tuple[MemberIdentity, ErrorCode]] = ()


@dataclass(frozen=True, slots=True)
class MemberDescription:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupDescription:
    group_id: str
    state: str
    protocol_type: str
    protocol_name: str
    members: Sequence[MemberDescription]


@dataclass(frozen=True, slots=True)
class PartitionCommit:
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


@dataclass(frozen=True, slots=True)
class CommitRequest:
    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    retention_ms: int | None
    """The retention time of the offsets, set by versions 2 to 4. None means the broker config."""
    unknown_group_error: ErrorCode
    """The error for a commit with a generation to an unknown group. It depends on the version."""
    partitions: Sequence[PartitionCommit]
