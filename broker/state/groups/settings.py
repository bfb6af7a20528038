"""What an operator may set about groups, and the bounds that nobody may pass.

The settings carry Kafka's names (`group.max.size` is `group_max_size`) and its defaults, with one exception:
`group.initial.rebalance.delay.ms` is 0, as in the configuration file that Kafka ships, not the 3000 of its code.
"""

from dataclasses import dataclass
from typing import Protocol

GROUP_ID_BYTES_MAX = 32_767
"""A group id is a string with a 16-bit length in the journal's keys, as in Kafka's."""

MEMBER_NAME_BYTES_MAX = 32_000
"""Instance ids, protocol types and names: what the journal's 16-bit lengths hold, with room for a UUID after it."""

CLIENT_ID_CHARACTERS_IN_MEMBER_ID_MAX = 255
"""A member id starts with the client id so that a human knows it again; a giant one adds nothing to that."""

PENDING_MEMBERS_MAX = 10_000
"""Ids handed out and not yet used, per group. A client that asks and never joins must not fill the memory."""

MEMBERS_MAX = 100_000
"""A rebalance answers every member at once; past this the leader's answer alone would exceed any frame."""

GROUPS_MAX = 1_000_000
"""Groups in memory. Kafka has no bound and dies of it."""

GROUP_RECORD_BYTES_MAX = 64 * 1024 * 1024
"""One generation in the journal. Kafka stops at `message.max.bytes` (1 MiB), which real groups have outgrown."""

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""A new member cannot send heartbeats before its first answer, so its parked JoinGroup has a life of its own."""

REJOIN_RETRY_MS_MIN = 1_000
"""When nobody rejoined in time, the next try comes no sooner: a rebalance timeout of 0 must not spin."""

OFFSET_METADATA_BYTES_MAX = 32_767
"""What the journal's 16-bit string length can hold, whatever `offset.metadata.max.bytes` says."""


class GroupConfig(Protocol):
    """What the coordinator reads, at each use, so that a dynamic change counts from then on."""

    @property
    def group_min_session_timeout_ms(self) -> int: ...
    @property
    def group_max_session_timeout_ms(self) -> int: ...
    @property
    def group_initial_rebalance_delay_ms(self) -> int: ...
    @property
    def group_max_size(self) -> int: ...
    @property
    def offset_metadata_max_bytes(self) -> int: ...
    @property
    def offsets_retention_minutes(self) -> int: ...
    @property
    def offsets_retention_check_interval_ms(self) -> int: ...


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The defaults, for those who have no broker around."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 0
    group_max_size: int = 2_147_483_647
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
