"""The group journal writes Kafka's format, reads it back, and skips unreadable entries."""

import logging
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from headgate.broker.state.groups.records import (
    CommittedOffset,
    GroupKey,
    OffsetKey,
    UnknownKey,
    decode_group_value,
    decode_key,
    decode_offset_value,
    encode_group_key,
    encode_offset_key,
    encode_offset_value,
)
from headgate.broker.state.groups.wire import Malformed
from tests.unit.broker.groups.driver import GROUP, SESSION_MS, Cluster, result_of, subscription

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
name = st.text(max_size=40)


def test_an_offset_is_written_as_kafka_writes_it() -> None:
    assert encode_offset_key(OffsetKey("g", "t", 7)) == bytes.fromhex("0001 0001 67 0001 74 00000007")
    value = CommittedOffset(258, 3, "m", 0x0102)
    assert encode_offset_value(value) == bytes.fromhex("0003 0000000000000102 00000003 0001 6d 0000000000000102")


def test_an_offset_with_its_own_expiry_is_written_in_version_one() -> None:
    value = CommittedOffset(1, -1, "", 2, expire_timestamp_ms=3)
    assert encode_offset_value(value) == struct.pack(">hqhqq", 1, 1, 0, 2, 3)


def test_a_group_is_written_as_kafka_writes_it() -> None:
    cluster = Cluster()
    member = cluster.stable_member()
    key, value = cluster.journal.durable[-1]
    assert key == bytes.fromhex("0002 0005") + GROUP.encode()
    member_id = member.member_id.encode()

    def text(data: bytes) -> bytes:
        return struct.pack(">h", len(data)) + data

    def blob(data: bytes) -> bytes:
        return struct.pack(">i", len(data)) + data

    assert value == (
        struct.pack(">h", 3)
        + text(b"consumer")
        + struct.pack(">i", 1)
        + text(b"range")
        + text(member_id)
        + struct.pack(">qi", cluster.clock.wall_ms(), 1)
        + text(member_id)
        + struct.pack(">h", -1)
        + text(b"client")
        + text(b"/127.0.0.1")
        + struct.pack(">ii", 30_000, SESSION_MS)
        + blob(subscription("topic"))
        + blob(b"all")
    )


@given(name, name, int32)
def test_offset_keys_come_back(group: str, topic: str, partition: int) -> None:
    key = OffsetKey(group, topic, partition)
    assert decode_key(encode_offset_key(key)) == key


@given(int64, name, int64, st.none() | st.integers(0, 2**63 - 1))
def test_offset_values_come_back(offset: int, metadata: str, at_ms: int, expire_ms: int | None) -> None:
    value = CommittedOffset(offset, -1, metadata, at_ms, expire_ms)
    assert decode_offset_value(encode_offset_value(value)) == value


def test_older_and_newer_versions_of_values_are_read() -> None:
    assert decode_offset_value(struct.pack(">hqhq", 0, 5, 0, 9)) == CommittedOffset(5, -1, "", 9)
    assert decode_offset_value(struct.pack(">hqhq", 2, 5, 0, 9)) == CommittedOffset(5, -1, "", 9)
    flexible = struct.pack(">hqi", 4, 5, 6) + b"\x02m" + struct.pack(">q", 9) + b"\x00"
    assert decode_offset_value(flexible) == CommittedOffset(5, 6, "m", 9)
    oldest = struct.pack(">h1h8sih1sh1si", 0, 8, b"consumer", 4, 1, b"p", 1, b"m", 1)
    oldest += struct.pack(">h1sh1sh1si", 1, b"m", 1, b"c", 1, b"h", 6000) + struct.pack(">i1si1s", 1, b"s", 1, b"a")
    group = decode_group_value(oldest)
    assert (group.generation_id, group.protocol_name, group.leader) == (4, "p", "m")
    assert group.members[0].rebalance_timeout_ms == group.members[0].session_timeout_ms == 6000
    newest = (
        struct.pack(">h", 4) + b"\x09consumer" + struct.pack(">i", 4) + b"\x02p\x02m" + struct.pack(">q", 8) + b"\x02"
    )
    newest += b"\x02m\x00\x02c\x02h" + struct.pack(">ii", 1, 2) + b"\x02s\x02a\x01\x05\x02xx\x00"
    member = decode_group_value(newest).members[0]
    assert (member.group_instance_id, member.subscription, member.assignment) == (None, b"s", b"a")


def test_keys_of_different_kinds_differ() -> None:
    assert decode_key(encode_group_key("g")) == GroupKey("g")
    assert decode_key(struct.pack(">hh", 3, 0)) == UnknownKey(3)


@given(st.binary(max_size=120))
def test_any_bytes_are_read_or_refused_as_malformed(data: bytes) -> None:
    for decode in (decode_key, decode_offset_value, decode_group_value):
        try:
            decode(data)
        except Malformed:
            continue


@given(st.lists(st.tuples(st.none() | st.binary(max_size=60), st.none() | st.binary(max_size=60)), max_size=8))
def test_loading_survives_any_entries(entries: list[tuple[bytes | None, bytes | None]]) -> None:
    logging.disable(logging.CRITICAL)
    try:
        cluster = Cluster()
        cluster.groups.load(entries)
        cluster.advance(1_000)
        list(cluster.groups.snapshot())
    finally:
        logging.disable(logging.NOTSET)


def test_an_entry_that_cannot_be_read_is_skipped_with_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    cluster.commit(7)
    bad = [(b"\x00\x01\x00", b""), (cluster.journal.durable[0][0], b"\x00\x09"), (None, b"x"), (b"\x00\x63", None)]
    restarted = Cluster()
    restarted.groups.load([*bad, *cluster.journal.durable, *bad])
    assert restarted.committed() == 7
    assert len(caplog.records) == 8


def test_members_go_on_without_a_rebalance_after_a_restart() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_pair()
    cluster.commit(5, member_id=leader.member_id, generation_id=1)
    restarted = cluster.restarted()
    assert restarted.describe() == cluster.describe()
    for member in (leader, follower):
        assert restarted.heartbeat(member.member_id, 1) is ErrorCode.none
    assert result_of(restarted.sync(follower.member_id, 1)).assignment == b"of the follower"
    assert restarted.commit(6, member_id=leader.member_id, generation_id=1) is ErrorCode.none
    assert result_of(restarted.join(follower.member_id)).generation_id == 1


def test_sessions_start_again_after_a_restart_and_expire() -> None:
    cluster = Cluster()
    member = cluster.stable_member()
    cluster.advance(SESSION_MS - 250)
    restarted = cluster.restarted()
    restarted.advance(SESSION_MS - 250)
    assert restarted.heartbeat(member.member_id, 1) is ErrorCode.none
    restarted.advance(SESSION_MS)
    assert restarted.state == "Empty"


def test_static_members_are_known_again_after_a_restart() -> None:
    cluster = Cluster()
    joined = cluster.join(instance="one")
    cluster.tick()
    before = result_of(joined)
    cluster.sync(before.member_id, 1, {before.member_id: b"all"}, instance="one")
    after = result_of(cluster.join(instance="one"))
    restarted = cluster.restarted()
    assert restarted.heartbeat(before.member_id, 1, "one") is ErrorCode.fenced_instance_id
    assert restarted.heartbeat(after.member_id, 1, "one") is ErrorCode.none


def test_a_group_in_the_middle_of_a_rebalance_comes_back_as_it_was_last_written() -> None:
    cluster = Cluster()
    member = cluster.stable_member()
    cluster.join()
    assert cluster.state == "PreparingRebalance"
    from_snapshot = Cluster()
    from_snapshot.groups.load(cluster.groups.snapshot())
    for other in (cluster.restarted(), from_snapshot):
        assert other.state == "Stable"
        assert other.heartbeat(member.member_id, 1) is ErrorCode.none


def test_a_snapshot_contains_appended_entries_that_are_not_yet_durable() -> None:
    cluster = Cluster()
    cluster.commit(1)
    cluster.commit(1, topic="deleted")
    cluster.journal.lands_at_once = False
    cluster.start_commit(2)
    cluster.groups.on_topic_deleted("deleted")
    compacted = Cluster()
    compacted.groups.load(cluster.groups.snapshot())
    assert {key: value.offset for key, value in compacted.offsets().items()} == {("topic", 0): 2}


def test_an_empty_generation_survives_a_restart() -> None:
    cluster = Cluster()
    member = cluster.stable_member()
    cluster.leave(member.member_id)
    restarted = cluster.restarted()
    assert (restarted.state, restarted.describe().protocol_type) == ("Empty", "consumer")
    joined = restarted.join()
    restarted.tick()
    assert result_of(joined).generation_id == 3
