import pytest
from kio.schema.errors import ErrorCode

from headgate.broker.state.groups.messages import CommitRequest, PartitionCommit
from tests.unit.broker.groups.driver import GROUP, Cluster, result_of
from tests.unit.broker.groups.group_settings import GroupSettings

DAY_MS = 24 * 3600 * 1000


def test_a_commit_keeps_offset_epoch_and_metadata() -> None:
    cluster = Cluster()
    results = result_of(cluster.start_commit(42, metadata="wo ich war \N{PILE OF POO}"))
    assert results == {("topic", 0): ErrorCode.none}
    committed = cluster.offsets()["topic", 0]
    assert (committed.offset, committed.leader_epoch) == (42, -1)
    assert committed.metadata == "wo ich war \N{PILE OF POO}"


def test_a_commit_is_answered_and_seen_when_it_is_durable() -> None:
    cluster = Cluster()
    cluster.commit(1)
    cluster.journal.lands_at_once = False
    answer = cluster.start_commit(2)
    stable = cluster.groups.fetch_offsets(GROUP, require_stable=True)
    assert not answer.done
    assert not stable.done
    assert cluster.committed() == 1
    cluster.journal.land()
    assert result_of(answer)["topic", 0] is ErrorCode.none
    assert result_of(stable)["topic"][0].offset == 2
    assert cluster.committed() == 2


def test_a_commit_that_fails_leaves_the_offset_before_it() -> None:
    cluster = Cluster()
    cluster.commit(1)
    cluster.journal.error = ErrorCode.kafka_storage_error
    assert cluster.commit(2) is ErrorCode.not_coordinator
    assert cluster.committed() == 1


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ("x" * 4096, ErrorCode.none),
        ("x" * 4097, ErrorCode.offset_metadata_too_large),
        ("\N{PILE OF POO}" * 2048, ErrorCode.none),
        ("\N{PILE OF POO}" * 2049, ErrorCode.offset_metadata_too_large),
    ],
)
def test_metadata_is_bounded_in_the_units_that_kafka_counts(metadata: str, error: ErrorCode) -> None:
    assert result_of(Cluster().start_commit(1, metadata=metadata))["topic", 0] is error


def test_metadata_never_exceeds_the_limit_of_the_journal() -> None:
    cluster = Cluster(GroupSettings(offset_metadata_max_bytes=1_000_000))
    too_large = result_of(cluster.start_commit(1, metadata="x" * 32_768))["topic", 0]
    assert too_large is ErrorCode.offset_metadata_too_large


def test_anybody_commits_to_a_group_without_members() -> None:
    cluster = Cluster()
    assert cluster.commit(1) is ErrorCode.none
    assert (cluster.state, cluster.describe().protocol_type) == ("Empty", "")
    assert cluster.commit(2, member_id="somebody") is ErrorCode.none
    assert cluster.commit(3, member_id="somebody", generation_id=0) is ErrorCode.unknown_member_id
    assert cluster.committed() == 2


def test_only_members_of_the_generation_commit_to_a_group_with_members() -> None:
    cluster = Cluster()
    member = cluster.stable_member()
    assert cluster.commit(1) is ErrorCode.unknown_member_id
    assert cluster.commit(1, member_id="nobody", generation_id=1) is ErrorCode.unknown_member_id
    assert cluster.commit(1, member_id=member.member_id, generation_id=2) is ErrorCode.illegal_generation
    assert cluster.commit(1, member_id=member.member_id) is ErrorCode.illegal_generation
    assert cluster.commit(1, member_id=member.member_id, generation_id=1) is ErrorCode.none


def test_a_generation_of_a_group_that_does_not_exist_is_refused() -> None:
    cluster = Cluster()
    assert cluster.commit(1, member_id="somebody", generation_id=0) is ErrorCode.illegal_generation
    assert cluster.groups.describe(GROUP) is None


def test_members_commit_while_the_others_are_awaited_but_not_before_their_assignment() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_pair()
    cluster.join(leader.member_id)
    assert cluster.commit(1, member_id=follower.member_id, generation_id=1) is ErrorCode.none
    cluster.join(follower.member_id)
    assert cluster.commit(2, member_id=follower.member_id, generation_id=2) is ErrorCode.rebalance_in_progress


def test_offsets_of_topics_that_members_read_are_not_deleted() -> None:
    cluster = Cluster()
    member = cluster.stable_member()
    for topic in ("topic", "other"):
        cluster.commit(1, topic=topic, member_id=member.member_id, generation_id=1)
    asked = [("topic", 0), ("other", 0), ("other", 9)]
    error, results = result_of(cluster.groups.delete_offsets(GROUP, asked))
    assert error is ErrorCode.none
    assert [results[each] for each in asked] == [
        ErrorCode.group_subscribed_to_topic,
        ErrorCode.none,
        ErrorCode.none,
    ]
    assert cluster.offsets().keys() == {("topic", 0)}


def test_deleting_offsets_needs_a_group_of_consumers_or_an_empty_one() -> None:
    cluster = Cluster()
    assert result_of(cluster.groups.delete_offsets(GROUP, []))[0] is ErrorCode.group_id_not_found
    assert result_of(cluster.groups.delete_offsets("", []))[0] is ErrorCode.invalid_group_id
    joined = cluster.join(protocol_type="connect")
    cluster.tick()
    assert result_of(joined).error is ErrorCode.none
    assert result_of(cluster.groups.delete_offsets(GROUP, [("topic", 0)]))[0] is ErrorCode.non_empty_group


def test_a_group_whose_subscriptions_cannot_be_read_may_read_anything() -> None:
    cluster = Cluster()
    cluster.join(protocols={"range": b"not a subscription"})
    cluster.tick()
    _, results = result_of(cluster.groups.delete_offsets(GROUP, [("topic", 0)]))
    assert results["topic", 0] is ErrorCode.group_subscribed_to_topic


def test_a_group_with_members_is_not_deleted() -> None:
    cluster = Cluster()
    member = cluster.stable_member()
    assert result_of(cluster.groups.delete(GROUP)) is ErrorCode.non_empty_group
    cluster.leave(member.member_id)
    assert result_of(cluster.groups.delete(GROUP)) is ErrorCode.none
    assert result_of(cluster.groups.delete(GROUP)) is ErrorCode.group_id_not_found


def test_deleting_a_group_deletes_commits_that_are_under_way() -> None:
    cluster = Cluster()
    cluster.commit(1, topic="durable")
    cluster.journal.lands_at_once = False
    cluster.start_commit(2, topic="under way")
    deleted = cluster.groups.delete(GROUP)
    cluster.start_commit(3, topic="afterwards")
    cluster.journal.land()
    assert result_of(deleted) is ErrorCode.none
    assert cluster.offsets().keys() == {("afterwards", 0)}
    assert cluster.restarted().offsets() == cluster.offsets()


def test_deleting_a_topic_deletes_its_offsets_in_every_group() -> None:
    cluster = Cluster()
    for group in ("first", "second"):
        cluster.start_commit(1, group=group)
        cluster.start_commit(1, group=group, topic="other")
    cluster.journal.lands_at_once = False
    cluster.start_commit(2, group="first")
    cluster.groups.on_topic_deleted("topic")
    cluster.journal.land()
    for group in ("first", "second"):
        assert cluster.offsets(group).keys() == {("other", 0)}
        assert cluster.restarted().offsets(group).keys() == {("other", 0)}


def test_offsets_of_topics_that_are_gone_are_dropped_after_a_restart() -> None:
    cluster = Cluster()
    cluster.commit(1)
    cluster.commit(1, topic="kept")
    restarted = cluster.restarted()
    restarted.groups.forget_topics(lambda topic: topic == "kept")
    assert restarted.offsets().keys() == {("kept", 0)}


def test_offsets_of_a_simple_consumer_expire_after_its_last_commit() -> None:
    cluster = Cluster()
    cluster.commit(1)
    cluster.commit(1, topic="other")
    cluster.clock.advance(6 * DAY_MS)
    cluster.commit(2)
    cluster.clock.advance(DAY_MS)
    cluster.groups.expire()
    assert cluster.offsets().keys() == {("topic", 0)}
    cluster.clock.advance(6 * DAY_MS)
    cluster.tick()
    assert cluster.groups.describe(GROUP) is None
    assert cluster.offsets() == {}
    assert cluster.restarted().groups.all() == []


def test_offsets_of_a_group_expire_after_it_became_empty() -> None:
    cluster = Cluster()
    member = cluster.stable_member()
    cluster.commit(1, member_id=member.member_id, generation_id=1)
    for _ in range(8 * 24 * 6):
        cluster.clock.advance(600_000)
        cluster.heartbeat(member.member_id, 1)
        cluster.groups.expire()
    assert cluster.committed() == 1
    cluster.leave(member.member_id)
    cluster.clock.advance(7 * DAY_MS - 1)
    cluster.groups.expire()
    assert cluster.committed() == 1
    cluster.clock.advance(1)
    cluster.groups.expire()
    assert cluster.groups.describe(GROUP) is None


def test_a_stable_group_loses_old_offsets_of_topics_that_it_no_longer_reads() -> None:
    cluster = Cluster()
    member = cluster.stable_member()
    for topic in ("topic", "other"):
        cluster.commit(1, topic=topic, member_id=member.member_id, generation_id=1)
    cluster.clock.advance(7 * DAY_MS)
    cluster.groups.expire()
    assert cluster.offsets().keys() == {("topic", 0)}


def test_a_commit_may_contain_a_retention_time() -> None:
    cluster = Cluster()
    cluster.start_commit(1, retention_ms=60_000)
    cluster.clock.advance(59_999)
    cluster.groups.expire()
    assert cluster.restarted().committed() == 1
    cluster.clock.advance(1)
    cluster.groups.expire()
    assert cluster.committed() is None


def test_an_empty_group_without_offsets_is_removed_unless_a_member_id_is_pending() -> None:
    cluster = Cluster()
    asked = result_of(cluster.join(version=4))
    cluster.groups.expire()
    joined = cluster.join(asked.member_id, version=4)
    cluster.tick()
    assert result_of(joined).error is ErrorCode.none
    cluster.leave(asked.member_id)
    cluster.groups.expire()
    assert cluster.groups.describe(GROUP) is None


def test_expiry_runs_periodically() -> None:
    cluster = Cluster(GroupSettings(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1_000))
    cluster.commit(1)
    cluster.advance(61_000)
    assert cluster.groups.describe(GROUP) is None


def test_offsets_beyond_the_end_of_the_log_are_reset_to_it() -> None:
    cluster = Cluster()
    for topic in ("shorter", "equal", "longer", "deleted"):
        commit = PartitionCommit(topic, 0, 10, 4, "note")
        cluster.groups.commit(CommitRequest(GROUP, "", None, -1, None, ErrorCode.illegal_generation, [commit]))
    ends = {"shorter": 9, "equal": 10, "longer": 11}
    cluster.journal.lands_at_once = False
    cluster.groups.limit_offsets(lambda topic, partition: ends.get(topic))
    # Clients never see the old offset, although the change is not durable yet.
    assert {topic: (value.offset, value.leader_epoch) for (topic, _), value in cluster.offsets().items()} == {
        "shorter": (9, -1),
        "equal": (10, 4),
        "longer": (10, 4),
        "deleted": (10, 4),
    }
    assert cluster.journal.waiting_count == 1
    cluster.journal.land()
    assert cluster.restarted().offsets() == cluster.offsets()
