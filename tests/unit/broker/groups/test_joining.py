import pytest
from kio.schema.errors import ErrorCode

from headgate.broker.state.groups.coordinator import check_group_id, is_too_long
from headgate.broker.state.groups.settings import GROUP_ID_BYTES_MAX, MEMBER_NAME_BYTES_MAX, PENDING_MEMBERS_MAX
from tests.unit.broker.groups.driver import GROUP, SESSION_MS, Cluster, result_of, subscription
from tests.unit.broker.groups.group_settings import GroupSettings


def test_the_first_member_becomes_the_leader_of_generation_one() -> None:
    cluster = Cluster()
    joined = cluster.join()
    assert not joined.done
    cluster.tick()
    result = result_of(joined)
    assert (result.error, result.generation_id, result.leader) == (ErrorCode.none, 1, result.member_id)
    assert [member.member_id for member in result.members] == [result.member_id]
    assert result.protocol_name == "range"
    assert cluster.state == "CompletingRebalance"


def test_only_the_leader_sees_the_members() -> None:
    leader, follower = Cluster().stable_pair()
    assert {member.member_id for member in leader.members} == {leader.member_id, follower.member_id}
    assert follower.members == ()
    assert follower.leader == leader.leader == leader.member_id


def test_a_new_dynamic_member_first_gets_its_id() -> None:
    cluster = Cluster()
    asked = result_of(cluster.join(version=4))
    assert asked.error is ErrorCode.member_id_required
    assert asked.member_id.startswith("client-")
    joined = cluster.join(asked.member_id, version=4)
    cluster.tick()
    assert result_of(joined).member_id == asked.member_id


def test_an_id_that_is_not_used_is_forgotten_after_the_session_timeout() -> None:
    cluster = Cluster()
    asked = result_of(cluster.join(version=4))
    cluster.advance(SESSION_MS)
    assert result_of(cluster.join(asked.member_id, version=4)).error is ErrorCode.unknown_member_id


def test_a_rebalance_waits_for_an_id_that_was_handed_out() -> None:
    cluster = Cluster()
    first = cluster.stable_member()
    asked = result_of(cluster.join(version=4))
    again = cluster.join(first.member_id)
    assert not again.done
    joined = cluster.join(asked.member_id, version=4)
    assert result_of(again).generation_id == result_of(joined).generation_id == 2


def test_a_rebalance_goes_on_when_an_id_that_was_handed_out_expires() -> None:
    cluster = Cluster()
    first = cluster.stable_member()
    cluster.join(version=4, session_ms=6_000)
    again = cluster.join(first.member_id)
    cluster.advance(6_000)
    assert result_of(again).generation_id == 2


def test_ids_that_are_handed_out_are_bounded() -> None:
    cluster = Cluster()
    for _ in range(PENDING_MEMBERS_MAX):
        cluster.join(version=4)
    assert result_of(cluster.join(version=4)).error is ErrorCode.group_max_size_reached


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001, 0, -1, -(2**31)])
def test_a_session_timeout_out_of_bounds_is_refused(session_ms: int) -> None:
    assert result_of(Cluster().join(session_ms=session_ms)).error is ErrorCode.invalid_session_timeout


@pytest.mark.parametrize("group", ["", "g" * (GROUP_ID_BYTES_MAX + 1), "é" * GROUP_ID_BYTES_MAX])
def test_a_group_id_that_is_empty_or_too_long_is_refused(group: str) -> None:
    assert result_of(Cluster().join(group=group)).error is ErrorCode.invalid_group_id


def test_an_instance_id_that_the_journal_cannot_hold_is_refused() -> None:
    assert result_of(Cluster().join(instance="i" * 40_000)).error is ErrorCode.invalid_request


def test_a_member_that_nobody_knows_is_refused_without_making_a_group() -> None:
    cluster = Cluster()
    assert result_of(cluster.join("nobody")).error is ErrorCode.unknown_member_id
    assert cluster.groups.describe(GROUP) is None


def test_members_must_share_the_protocol_type_and_a_protocol() -> None:
    cluster = Cluster()
    cluster.stable_member()
    assert result_of(cluster.join(protocol_type="connect")).error is ErrorCode.inconsistent_group_protocol
    assert result_of(cluster.join(protocols={"sticky": b""})).error is ErrorCode.inconsistent_group_protocol
    assert result_of(cluster.join(protocols={})).error is ErrorCode.inconsistent_group_protocol


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", {"range": b""}), ("consumer", {}), ("", {})])
def test_the_first_member_has_a_protocol_type_and_a_protocol(protocol_type: str, protocols: dict[str, bytes]) -> None:
    joined = Cluster().join(protocol_type=protocol_type, protocols=protocols)
    assert result_of(joined).error is ErrorCode.inconsistent_group_protocol


def test_the_protocol_with_the_most_first_votes_of_those_that_all_support_is_chosen() -> None:
    cluster = Cluster()
    joins = [
        cluster.join(protocols={"only-mine": b"", "range": b"", "sticky": b""}),
        cluster.join(protocols={"sticky": b"", "range": b""}),
        cluster.join(protocols={"sticky": b"", "range": b""}),
    ]
    cluster.tick()
    assert {result_of(join).protocol_name for join in joins} == {"sticky"}


def test_a_follower_that_joins_again_unchanged_stays_in_its_generation() -> None:
    cluster = Cluster()
    _, follower = cluster.stable_pair()
    again = result_of(cluster.join(follower.member_id))
    assert (again.error, again.generation_id, again.members) == (ErrorCode.none, follower.generation_id, ())
    assert cluster.state == "Stable"


def test_a_follower_that_changed_its_subscription_starts_a_rebalance() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_pair()
    again = cluster.join(follower.member_id, protocols={"range": subscription("another")})
    assert cluster.state == "PreparingRebalance"
    cluster.join(leader.member_id)
    assert result_of(again).generation_id == follower.generation_id + 1


def test_a_leader_that_joins_again_starts_a_rebalance() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_pair()
    cluster.join(leader.member_id)
    assert cluster.heartbeat(follower.member_id, follower.generation_id) is ErrorCode.rebalance_in_progress


def test_a_member_that_lost_the_answer_to_its_join_gets_it_again() -> None:
    cluster = Cluster()
    joined = cluster.join()
    cluster.tick()
    first = result_of(joined)
    assert result_of(cluster.join(first.member_id)) == first


def test_a_join_that_is_sent_again_lets_the_first_one_go() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_pair()
    lost = cluster.join(leader.member_id)
    again = cluster.join(leader.member_id)
    assert result_of(lost).error is ErrorCode.rebalance_in_progress
    cluster.join(follower.member_id)
    assert result_of(again).error is ErrorCode.none


def test_a_member_that_does_not_rejoin_in_time_is_removed_and_a_new_leader_is_chosen() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_pair(rebalance_ms=5_000)
    again = cluster.join(follower.member_id, protocols={"range": b"changed"}, rebalance_ms=5_000)
    cluster.advance(5_000)
    assert result_of(again).leader == follower.member_id
    assert cluster.heartbeat(leader.member_id, leader.generation_id) is ErrorCode.unknown_member_id


def test_a_full_group_accepts_no_more_members() -> None:
    cluster = Cluster(GroupSettings(group_max_size=1))
    member = cluster.stable_member()
    assert result_of(cluster.join()).error is ErrorCode.group_max_size_reached
    assert cluster.heartbeat(member.member_id, member.generation_id) is ErrorCode.none


def test_the_initial_delay_collects_members_and_ends_with_the_rebalance_timeout() -> None:
    cluster = Cluster(GroupSettings(group_initial_rebalance_delay_ms=3_000))
    joins = [cluster.join(rebalance_ms=7_000)]
    for _ in range(3):
        cluster.advance(2_000)
        assert not joins[0].done
        joins.append(cluster.join(rebalance_ms=7_000))
    cluster.advance(1_000)
    assert {result_of(join).generation_id for join in joins} == {1}


def test_a_new_member_that_waits_too_long_for_the_others_is_sent_away() -> None:
    cluster = Cluster()
    first = cluster.stable_member()
    cluster.join(first.member_id, rebalance_ms=3_600_000)
    cluster.tick()
    second = cluster.join(rebalance_ms=3_600_000)
    for _ in range(61):
        cluster.heartbeat(first.member_id, 2)
        cluster.advance(5_000)
    assert result_of(second).error is ErrorCode.unknown_member_id


def test_a_rebalance_timeout_of_zero_does_not_spin() -> None:
    cluster = Cluster()
    joined = cluster.join(instance="one", rebalance_ms=0)
    cluster.tick()
    member = result_of(joined)
    cluster.sync(member.member_id, member.generation_id, {}, instance="one")
    cluster.join(rebalance_ms=-5)
    cluster.advance(60_000)
    assert cluster.state == "Empty"


def test_the_initial_delay_uses_the_whole_rebalance_timeout() -> None:
    cluster = Cluster(GroupSettings(group_initial_rebalance_delay_ms=3_000))
    joins = [cluster.join(rebalance_ms=3_001) for _ in range(2)]
    for milliseconds, is_done in ((2_999, False), (1, False), (1, True)):
        cluster.clock.advance(milliseconds)
        cluster.tick()
        assert joins[0].done is is_done
    alone = Cluster(GroupSettings(group_initial_rebalance_delay_ms=3_000))
    join = alone.join(rebalance_ms=9_000)
    alone.clock.advance(3_000)
    alone.tick()
    # No other member joined during the delay.
    assert join.done


def test_names_have_a_limited_size() -> None:
    assert not is_too_long("x" * MEMBER_NAME_BYTES_MAX)
    assert is_too_long("x" * (MEMBER_NAME_BYTES_MAX + 1))
    assert is_too_long("ä" * (MEMBER_NAME_BYTES_MAX // 2 + 1))
    assert check_group_id("x" * GROUP_ID_BYTES_MAX) is ErrorCode.none
    assert check_group_id("x" * (GROUP_ID_BYTES_MAX + 1)) is ErrorCode.invalid_group_id
    assert check_group_id("") is ErrorCode.invalid_group_id
