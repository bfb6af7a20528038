from kio.schema.errors import ErrorCode

from headgate.broker.state.groups.messages import JoinResult
from tests.unit.broker.groups.driver import SESSION_MS, Cluster, result_of


def stable_static(cluster: Cluster) -> JoinResult:
    joined = cluster.join(instance="one")
    cluster.tick()
    result = result_of(joined)
    cluster.sync(result.member_id, 1, {result.member_id: b"all"}, instance="one")
    return result


def test_a_static_member_that_comes_back_keeps_its_assignment_without_a_rebalance() -> None:
    cluster = Cluster()
    before = stable_static(cluster)
    after = result_of(cluster.join(instance="one", version=9))
    assert (after.error, after.generation_id) == (ErrorCode.none, before.generation_id)
    assert after.member_id != before.member_id
    assert after.skip_assignment
    assert result_of(cluster.sync(after.member_id, 1, instance="one")).assignment == b"all"


def test_before_version_nine_a_returning_static_leader_takes_itself_for_a_follower() -> None:
    cluster = Cluster()
    before = stable_static(cluster)
    after = result_of(cluster.join(instance="one", version=8))
    assert (after.leader, after.members, after.skip_assignment) == (before.member_id, (), False)


def test_the_replaced_id_is_fenced_everywhere() -> None:
    cluster = Cluster()
    before = stable_static(cluster)
    cluster.join(instance="one")
    fenced = ErrorCode.fenced_instance_id
    assert cluster.heartbeat(before.member_id, 1, "one") is fenced
    assert result_of(cluster.join(before.member_id, instance="one")).error is fenced
    assert result_of(cluster.sync(before.member_id, 1, instance="one")).error is fenced
    assert cluster.leave(before.member_id, "one") is fenced
    commit = cluster.start_commit(1, member_id=before.member_id, generation_id=1, instance="one")
    assert list(result_of(commit).values()) == [fenced]


def test_a_static_member_without_its_instance_id_is_unknown_under_the_replaced_id() -> None:
    cluster = Cluster()
    before = stable_static(cluster)
    cluster.join(instance="one")
    assert cluster.heartbeat(before.member_id, 1) is ErrorCode.unknown_member_id


def test_a_request_that_waits_under_the_replaced_id_is_fenced() -> None:
    cluster = Cluster()
    member = stable_static(cluster)
    other = cluster.join(instance="two")
    parked = cluster.join(instance="two")
    assert result_of(other).error is ErrorCode.fenced_instance_id
    cluster.join(member.member_id, instance="one")
    assert result_of(parked).error is ErrorCode.none


def test_a_static_member_that_comes_back_with_another_protocol_starts_a_rebalance() -> None:
    cluster = Cluster()
    stable_static(cluster)
    back = cluster.join(instance="one", protocols={"sticky": b"", "range": b""})
    assert result_of(back).generation_id == 2
    assert result_of(back).protocol_name == "sticky"


def test_a_static_member_that_comes_back_while_the_assignment_is_awaited_starts_a_rebalance() -> None:
    cluster = Cluster()
    joined = cluster.join(instance="one")
    cluster.tick()
    parked = cluster.sync(result_of(joined).member_id, 1, instance="one")
    assert result_of(parked).error is ErrorCode.none
    cluster = Cluster()
    leader, follower = cluster.join(), cluster.join(instance="one")
    cluster.tick()
    parked = cluster.sync(result_of(follower).member_id, 1, instance="one")
    back = cluster.join(instance="one")
    assert result_of(parked).error is ErrorCode.fenced_instance_id
    assert cluster.state == "PreparingRebalance"
    cluster.join(result_of(leader).member_id)
    assert result_of(back).generation_id == 2


def test_a_rebalance_keeps_a_static_member_that_is_away_until_its_session_ends() -> None:
    cluster = Cluster()
    member = stable_static(cluster)
    newcomer = cluster.join(rebalance_ms=2_000)
    cluster.join(member.member_id, instance="one", rebalance_ms=2_000, session_ms=60_000)
    assert result_of(newcomer).error is ErrorCode.none
    again = cluster.join(result_of(newcomer).member_id, protocols={"range": b"changed"}, rebalance_ms=2_000)
    cluster.advance(2_000)
    assert result_of(again).generation_id == 3
    assert {each.group_instance_id for each in cluster.describe().members} == {"one", None}


def test_an_administrator_removes_a_static_member_by_its_instance_id() -> None:
    cluster = Cluster()
    member = stable_static(cluster)
    assert cluster.leave(instance="two") is ErrorCode.unknown_member_id
    assert cluster.leave() is ErrorCode.unknown_member_id
    assert cluster.leave(instance="one") is ErrorCode.none
    assert cluster.heartbeat(member.member_id, 1, "one") is ErrorCode.unknown_member_id
    assert cluster.state == "Empty"


def test_a_group_whose_static_members_are_all_away_ends_with_their_sessions() -> None:
    cluster = Cluster()
    stable_static(cluster)
    cluster.advance(SESSION_MS)
    assert cluster.state == "Empty"
    assert result_of(cluster.join("gone", instance="one")).error is ErrorCode.unknown_member_id


def test_a_new_id_that_cannot_be_stored_is_not_handed_out() -> None:
    cluster = Cluster()
    stable_static(cluster)
    cluster.journal.error = ErrorCode.kafka_storage_error
    back = result_of(cluster.join(instance="one"))
    assert (back.error, back.member_id) == (ErrorCode.not_coordinator, "")


def test_a_rebalance_overtakes_the_write_of_a_new_id() -> None:
    cluster = Cluster()
    stable_static(cluster)
    cluster.journal.lands_at_once = False
    back = cluster.join(instance="one")
    newcomer = cluster.join()
    assert result_of(back).generation_id == result_of(newcomer).generation_id == 2
    cluster.journal.land()
    assert cluster.state == "CompletingRebalance"


def test_a_commit_without_a_member_id_is_checked_by_its_instance_id() -> None:
    cluster = Cluster()
    member = cluster.stable_member(instance="one")

    def commit(member_id: str, generation_id: int, instance: str | None) -> ErrorCode:
        started = cluster.start_commit(1, member_id=member_id, generation_id=generation_id, instance=instance)
        return result_of(started)["topic", 0]

    assert commit("", -1, None) is ErrorCode.unknown_member_id
    assert commit("", -1, "one") is ErrorCode.fenced_instance_id
    assert commit("", -1, "other") is ErrorCode.unknown_member_id
    assert commit(member.member_id, -1, "one") is ErrorCode.illegal_generation
    assert commit(member.member_id, member.generation_id, "one") is ErrorCode.none
