import pytest
from kio.schema.errors import ErrorCode

from headgate.broker.state.groups.group import Group
from headgate.broker.state.groups.messages import MemberIdentity
from headgate.broker.state.groups.outbox import Outbox
from headgate.broker.state.groups.states import NEXT_STATES, GroupState
from tests.unit.broker.groups.driver import GROUP, SESSION_MS, Cluster, result_of, subscription


@pytest.mark.parametrize("start", list(GroupState))
@pytest.mark.parametrize("end", list(GroupState))
def test_a_group_moves_along_the_table_alone(start: GroupState, end: GroupState) -> None:
    group = Group(GROUP, 0, Outbox())
    group.state = start
    if end in NEXT_STATES[start]:
        group.transition(end, 5)
        assert (group.previous_state, group.state, group.state_since_wall_ms) == (start, end, 5)
    else:
        with pytest.raises(RuntimeError):
            group.transition(end, 5)


def test_followers_wait_for_the_leaders_assignment() -> None:
    cluster = Cluster()
    leader, follower = (cluster.join(), cluster.join())
    cluster.tick()
    waiting = cluster.sync(result_of(follower).member_id, 1)
    assert not waiting.done
    cluster.sync(result_of(leader).member_id, 1, {result_of(follower).member_id: b"yours"})
    assert result_of(waiting).assignment == b"yours"
    assert cluster.state == "Stable"


def test_a_member_without_an_assignment_gets_an_empty_one() -> None:
    cluster = Cluster()
    joined = cluster.join()
    cluster.tick()
    synced = result_of(cluster.sync(result_of(joined).member_id, 1, {"stranger": b"nothing"}))
    assert (synced.error, synced.assignment) == (ErrorCode.none, b"")


def test_the_assignment_is_handed_out_when_it_is_durable() -> None:
    cluster = Cluster()
    joined = cluster.join()
    cluster.tick()
    cluster.journal.lands_at_once = False
    member_id = result_of(joined).member_id
    synced = cluster.sync(member_id, 1, {member_id: b"all"})
    assert not synced.done
    assert cluster.state == "CompletingRebalance"
    assert cluster.commit(1, member_id=member_id, generation_id=1) is ErrorCode.rebalance_in_progress
    cluster.journal.land()
    assert result_of(synced).assignment == b"all"
    assert cluster.state == "Stable"


def test_an_assignment_that_cannot_be_stored_starts_another_rebalance() -> None:
    cluster = Cluster()
    joined = cluster.join()
    cluster.tick()
    cluster.journal.error = ErrorCode.kafka_storage_error
    member_id = result_of(joined).member_id
    assert result_of(cluster.sync(member_id, 1, {member_id: b"all"})).error is ErrorCode.not_coordinator
    assert cluster.state == "PreparingRebalance"


def test_a_rebalance_during_the_write_of_an_assignment_wins() -> None:
    cluster = Cluster()
    joined = cluster.join()
    cluster.tick()
    cluster.journal.lands_at_once = False
    member_id = result_of(joined).member_id
    synced = cluster.sync(member_id, 1, {member_id: b"all"})
    newcomer = cluster.join()
    assert result_of(synced).error is ErrorCode.rebalance_in_progress
    cluster.journal.land()
    assert cluster.state == "PreparingRebalance"
    cluster.join(member_id)
    assert result_of(newcomer).generation_id == 2


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"member_id": "nobody"}, ErrorCode.unknown_member_id),
        ({"generation_id": 7}, ErrorCode.illegal_generation),
        ({"protocol_type": "connect"}, ErrorCode.inconsistent_group_protocol),
        ({"protocol_name": "sticky"}, ErrorCode.inconsistent_group_protocol),
        ({"group": "absent"}, ErrorCode.unknown_member_id),
        ({"group": ""}, ErrorCode.invalid_group_id),
        ({"instance": "nowhere"}, ErrorCode.unknown_member_id),
    ],
)
def test_a_sync_that_does_not_fit_the_group_is_refused(change: dict[str, object], error: ErrorCode) -> None:
    cluster = Cluster()
    member = cluster.stable_member()
    asked: dict[str, object] = {"member_id": member.member_id, "generation_id": 1, **change}
    assert result_of(cluster.sync(**asked)).error is error  # type: ignore[arg-type]  # the cases are of mixed types


def test_a_member_that_does_not_sync_in_time_is_removed() -> None:
    cluster = Cluster()
    leader_joins, follower_joins = cluster.join(rebalance_ms=8_000), cluster.join(rebalance_ms=8_000)
    cluster.tick()
    leader, follower = result_of(leader_joins), result_of(follower_joins)
    waiting = cluster.sync(follower.member_id, 1)
    cluster.advance(4_000)
    cluster.heartbeat(leader.member_id, 1)
    cluster.advance(4_000)
    assert result_of(waiting).error is ErrorCode.rebalance_in_progress
    assert cluster.heartbeat(leader.member_id, 1) is ErrorCode.unknown_member_id
    assert result_of(cluster.join(follower.member_id)).leader == follower.member_id


def test_heartbeats_keep_a_session_and_silence_ends_it() -> None:
    cluster = Cluster()
    member = cluster.stable_member()
    for _ in range(10):
        cluster.advance(SESSION_MS - 500)
        assert cluster.heartbeat(member.member_id, 1) is ErrorCode.none
    cluster.advance(SESSION_MS - 250)
    assert cluster.state == "Stable"
    cluster.advance(250)
    assert cluster.state == "Empty"


def test_a_member_whose_request_is_parked_does_not_time_out() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_pair()
    parked = cluster.join(leader.member_id)
    for _ in range(5):
        cluster.advance(5_000)
        assert cluster.heartbeat(follower.member_id, 1) is ErrorCode.rebalance_in_progress
    cluster.join(follower.member_id)
    assert result_of(parked).error is ErrorCode.none
    cluster.advance(SESSION_MS - 250)
    assert cluster.heartbeat(leader.member_id, 2) is ErrorCode.none


def test_commits_keep_a_session() -> None:
    cluster = Cluster()
    member = cluster.stable_member()
    for offset in range(10):
        cluster.advance(SESSION_MS - 500)
        assert cluster.commit(offset, member_id=member.member_id, generation_id=1) is ErrorCode.none


def test_the_others_rebalance_when_a_session_ends() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_pair()
    for _ in range(2):
        cluster.advance(SESSION_MS // 2)
        cluster.heartbeat(leader.member_id, 1)
    assert cluster.heartbeat(leader.member_id, 1) is ErrorCode.rebalance_in_progress
    assert cluster.heartbeat(follower.member_id, 1) is ErrorCode.unknown_member_id


def test_a_jump_of_the_wall_clock_ends_no_session() -> None:
    cluster = Cluster()
    member = cluster.stable_member()
    cluster.clock._wall_ms += 10**12
    cluster.tick()
    assert cluster.heartbeat(member.member_id, 1) is ErrorCode.none


def test_many_heartbeats_leave_one_timer_per_member() -> None:
    cluster = Cluster()
    member = cluster.stable_member()
    planned = len(cluster.timers._heap)
    for _ in range(10_000):
        cluster.heartbeat(member.member_id, 1)
    assert len(cluster.timers._heap) == planned


@pytest.mark.parametrize(
    ("member_id", "generation_id", "instance", "error"),
    [
        ("nobody", 1, None, ErrorCode.unknown_member_id),
        ("", 1, None, ErrorCode.unknown_member_id),
        (None, 2, None, ErrorCode.illegal_generation),
        (None, -1, None, ErrorCode.illegal_generation),
        (None, 1, "nowhere", ErrorCode.unknown_member_id),
    ],
)
def test_a_heartbeat_that_does_not_fit_is_refused(
    member_id: str | None, generation_id: int, instance: str | None, error: ErrorCode
) -> None:
    cluster = Cluster()
    member = cluster.stable_member()
    asked_id = member.member_id if member_id is None else member_id
    assert cluster.heartbeat(asked_id, generation_id, instance) is error


def test_the_last_member_leaves_an_empty_group_of_the_next_generation() -> None:
    cluster = Cluster()
    member = cluster.stable_member()
    assert cluster.leave(member.member_id) is ErrorCode.none
    assert cluster.state == "Empty"
    joined = cluster.join()
    cluster.tick()
    assert result_of(joined).generation_id == 3


def test_several_members_leave_at_once_and_each_is_answered() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_pair()
    leaving = [MemberIdentity(each, None) for each in (leader.member_id, "nobody", follower.member_id)]
    result = cluster.groups.leave(GROUP, leaving)
    assert [error for _, error in result.members] == [ErrorCode.none, ErrorCode.unknown_member_id, ErrorCode.none]
    assert cluster.state == "Empty"


def test_a_member_that_is_removed_while_it_waits_gets_an_error() -> None:
    cluster = Cluster()
    leader_joins, follower_joins = cluster.join(), cluster.join()
    cluster.tick()
    follower = result_of(follower_joins)
    parked_sync = cluster.sync(follower.member_id, 1)
    cluster.leave(follower.member_id)
    assert result_of(parked_sync).error is ErrorCode.unknown_member_id
    newcomer = cluster.join()
    cluster.groups.leave(GROUP, [MemberIdentity(each.member_id, None) for each in cluster.describe().members])
    assert result_of(newcomer).error is ErrorCode.unknown_member_id
    assert result_of(leader_joins).error is ErrorCode.none


def test_an_id_that_was_handed_out_can_leave() -> None:
    cluster = Cluster()
    asked = result_of(cluster.join(version=4))
    assert cluster.leave(asked.member_id) is ErrorCode.none
    assert result_of(cluster.join(asked.member_id, version=4)).error is ErrorCode.unknown_member_id


def test_an_answer_may_bring_the_next_request_at_once() -> None:
    """The server may read the next request of a connection as soon as it writes a response."""
    cluster = Cluster()
    synced: list[ErrorCode] = []
    joins = [cluster.join() for _ in range(3)]
    for join in joins:
        join.then(
            lambda joined: cluster.sync(
                joined.member_id, joined.generation_id, {each.member_id: b"x" for each in joined.members}
            ).then(lambda result: synced.append(result.error))
        )
    cluster.tick()
    assert synced == [ErrorCode.none] * 3


def test_a_session_restarts_when_a_parked_request_is_answered() -> None:
    cluster = Cluster()
    joins = [cluster.join(), cluster.join()]
    cluster.tick()
    leader, follower = (result_of(join) for join in joins)
    cluster.sync(follower.member_id, 1)
    cluster.advance(SESSION_MS - 1_000)
    cluster.sync(leader.member_id, 1, {})
    cluster.advance(SESSION_MS - 1_000)
    assert cluster.heartbeat(leader.member_id, 1) is ErrorCode.none
    assert cluster.heartbeat(follower.member_id, 1) is ErrorCode.none
    # The same applies to a JoinGroup that waits for the others.
    cluster.join(follower.member_id, protocols={"range": subscription("other")})
    cluster.advance(SESSION_MS - 1_000)
    cluster.join(leader.member_id)
    cluster.advance(SESSION_MS - 1_000)
    assert cluster.heartbeat(follower.member_id, 2) is ErrorCode.none
