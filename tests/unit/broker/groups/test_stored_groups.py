"""The values of group records in every version, and the topics of a subscription."""

import struct
from dataclasses import replace

import pytest

from headgate.broker.state.groups.loading import restore
from headgate.broker.state.groups.outbox import Outbox
from headgate.broker.state.groups.records import StoredGroup, StoredMember, decode_group_value
from headgate.broker.state.groups.states import GroupState
from headgate.broker.state.groups.subscription import subscribed_topics
from headgate.broker.state.groups.wire import Malformed, Reader

NOW_MS = 1_800_000_000_000


def text(value: str | None) -> bytes:
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value)) + value.encode()


def sized(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def stored(version: int) -> bytes:
    """Kafka's GroupMetadataValue with one member."""
    return b"".join(
        [
            struct.pack(">h", version) + text("consumer") + struct.pack(">i", 7) + text("range") + text("m"),
            struct.pack(">q", 1_700_000_000_000) if version >= 2 else b"",
            struct.pack(">i", 1) + text("m"),
            text("instance") if version >= 3 else b"",
            text("client") + text("/127.0.0.1"),
            struct.pack(">i", 60_000) if version >= 1 else b"",
            struct.pack(">i", 10_000) + sized(b"subscription") + sized(b"assignment"),
        ]
    )


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_group_is_read_in_every_version(version: int) -> None:
    member = StoredMember(
        "m",
        "instance" if version >= 3 else None,
        "client",
        "/127.0.0.1",
        # Before version 1, the session timeout limits the rebalance too.
        60_000 if version >= 1 else 10_000,
        10_000,
        b"subscription",
        b"assignment",
    )
    since = 1_700_000_000_000 if version >= 2 else -1
    assert decode_group_value(stored(version)) == StoredGroup("consumer", 7, "range", "m", since, [member])


@pytest.mark.parametrize("version", [-1, 5, 9])
def test_other_versions_are_malformed(version: int) -> None:
    with pytest.raises(Malformed):
        decode_group_value(struct.pack(">h", version) + stored(3)[2:])


@pytest.mark.parametrize("size", range(0, len(stored(3)), 3))
def test_a_truncated_value_is_malformed(size: int) -> None:
    with pytest.raises(Malformed):
        decode_group_value(stored(3)[:size])


@pytest.mark.parametrize(
    ("metadata", "topics"),
    [
        (struct.pack(">hi", 1, 0), set()),
        (struct.pack(">hi", 1, 2) + text("a") + text("bc"), {"a", "bc"}),
        (struct.pack(">hi", 1, 1) + text("a") + b"user data", {"a"}),
        (struct.pack(">hi", 1, 1) + text(""), {""}),
        (struct.pack(">hi", 1, -1), None),
        (struct.pack(">hi", 1, 2) + text("a"), None),
        (struct.pack(">hi", 1, 1) + struct.pack(">h", 2) + b"a", None),
        (struct.pack(">hi", 1, 1) + struct.pack(">h", -1), None),
        (struct.pack(">hi", 1, 1) + struct.pack(">h", 1) + b"\xff", None),
        (b"\0\1\0", None),
        (b"", None),
    ],
)
def test_the_topics_of_a_subscription(metadata: bytes, topics: set[str] | None) -> None:
    assert subscribed_topics(metadata) == topics


def test_a_length_may_not_exceed_the_rest_of_the_record() -> None:
    for length, is_valid in ((5, True), (6, False), (9, False), (-1, False)):
        reader = Reader(struct.pack(">i", length) + bytes(5))
        if is_valid:
            assert reader.array_length() == length
        else:
            with pytest.raises(Malformed, match=f"the length is {length}, but 5 bytes are left"):
                reader.array_length()


@pytest.mark.parametrize(("version", "since"), [(1, NOW_MS), (2, 1_700_000_000_000)])
def test_a_group_is_empty_since_its_stored_time(version: int, since: int) -> None:
    group = restore("g", decode_group_value(stored(version)), NOW_MS, Outbox())
    assert group.state_since_wall_ms == since
    assert (group.generation_id, group.protocol_type, group.protocol_name) == (7, "consumer", "range")
    assert (group.state, group.leader_id, list(group.members)) == (GroupState.STABLE, "m", ["m"])


def test_a_stored_leader_that_is_no_member_is_replaced() -> None:
    value = decode_group_value(stored(3))
    assert restore("g", replace(value, leader="gone"), NOW_MS, Outbox()).leader_id == "m"
    empty = restore("g", replace(value, members=[]), NOW_MS, Outbox())
    assert (empty.state, empty.leader_id) == (GroupState.EMPTY, None)


@pytest.mark.parametrize(("generation", "following"), [(0, 1), (2**31 - 2, 2**31 - 1), (2**31 - 1, 1)])
def test_generations_wrap_around_to_one(generation: int, following: int) -> None:
    group = restore("g", decode_group_value(stored(3)), NOW_MS, Outbox())
    group.generation_id = generation
    group.transition(GroupState.PREPARING_REBALANCE, NOW_MS)
    group.start_generation(NOW_MS)
    assert group.generation_id == following
