"""The configs and fixed limits of groups.

Names are Kafka's: `group.max.size` is `group_max_size`.
"""

from typing import Protocol

GROUP_ID_BYTES_MAX = 32_767
"""Journal keys contain the group id as a string with a 16-bit length, as in Kafka."""

MEMBER_NAME_BYTES_MAX = 32_000
"""Instance ids, protocol types and protocol names: strings with a 16-bit length, and space for a UUID suffix."""

CLIENT_ID_CHARACTERS_IN_MEMBER_ID_MAX = 255
"""A member id starts with the client id, for readability. Longer client ids are truncated."""

PENDING_MEMBERS_MAX = 10_000
"""Member ids per group that are not used yet. A client that never joins must not fill the memory."""

MEMBERS_MAX = 100_000
"""Members of a group. With more, the response to the leader would exceed the maximum frame size."""

GROUPS_MAX = 1_000_000
"""Groups in memory. Kafka has no limit and can run out of memory."""

GROUP_RECORD_BYTES_MAX = 64 * 1024 * 1024
"""Size of a generation in the journal. Kafka's limit is `message.max.bytes` (1 MiB), too small for large groups."""

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""Timeout of the JoinGroup request of a new member, which cannot send heartbeats before its first response."""

REJOIN_RETRY_MS_MIN = 1_000
"""Minimum delay before the next attempt if no member joined. A rebalance timeout of 0 must not cause a busy loop."""

OFFSET_METADATA_BYTES_MAX = 32_767
"""The journal stores metadata as a string with a 16-bit length, independent of `offset.metadata.max.bytes`."""


class GroupConfig(Protocol):
    """The configs of the coordinator. They are read at each use, so that dynamic changes apply at once."""

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
