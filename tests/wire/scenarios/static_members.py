"""Static group members, identified by their group instance id (KIP-345)."""

from tests.wire.entities import Plain
from tests.wire.scenarios.membership import (
    HEARTBEAT,
    JOIN,
    LEAVE,
    SYNC,
    Member,
    describe,
    join_body,
    stable_group,
    subscription,
    take_in,
)
from tests.wire.transcript import Wire


def static_members(wire: Wire) -> None:
    group = wire.group("static")
    first = Member(wire, group, "A", instance="one")
    first.join()
    first.sync({first.member_id: b"everything"})
    first.heartbeat()
    describe(wire, group, "with a static member")
    again = Member(wire, group, "A restarted", instance="one")
    again.join()
    again.sync()
    again.heartbeat()
    first.heartbeat()
    first.sync()
    wire.ask("join_group", JOIN, first.join_request(), label="A joins with the replaced id", on=first.connection)
    commit = {
        "group_id": group,
        "generation_id_or_member_epoch": first.generation,
        "member_id": first.member_id,
        "group_instance_id": "one",
        "topics": [{"name": wire.topic("static"), "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
    }
    wire.ask("offset_commit", 9, commit, label="A commits with the replaced id")
    first.leave()
    again.heartbeat()
    other = Member(
        wire, group, "restarted with other protocols", instance="one", protocols=(("range", subscription("changed")),)
    )
    other.join()
    other.sync({other.member_id: b"everything"})
    by_instance = {"group_id": group, "members": [{"member_id": "", "group_instance_id": "one"}]}
    wire.ask("leave_group", LEAVE, by_instance, label="removed by its instance id alone")
    other.heartbeat()
    describe(wire, group, "empty")


def two_static_members(wire: Wire) -> None:
    first = stable_group(wire, "statics", instance="one")
    second = Member(wire, first.group, "B", instance="two")
    take_in(first, second)
    restarted = Member(wire, first.group, "B restarted", instance="two")
    restarted.join()
    restarted.sync()
    first.heartbeat()
    both = [{"member_id": "", "group_instance_id": name} for name in ("one", "two", "three")]
    wire.ask("leave_group", LEAVE, {"group_id": first.group, "members": both}, label="all removed, and one unknown")


def requests_that_do_not_fit_a_static_member(wire: Wire) -> None:
    member = stable_group(wire, "unfit", instance="one")
    right: Plain = {
        "group_id": member.group,
        "generation_id": member.generation,
        "member_id": member.member_id,
        "group_instance_id": "one",
    }
    changes: list[Plain] = [
        {"group_instance_id": "other"},
        {"member_id": "wrong"},
        {"group_instance_id": None},
        {"member_id": "wrong", "generation_id": 99},
        {"generation_id": -1},
        {"member_id": ""},
        {"group_id": ""},
        {"group_id": wire.name("absent")},
    ]
    for change in changes:
        wire.ask("heartbeat", HEARTBEAT, {**right, **change})
        wire.ask("sync_group", SYNC, {**member.sync_request(), **change})
    for name in ("protocol_name", "protocol_type"):
        for value in ("sticky", None):
            wire.ask("sync_group", SYNC, {**member.sync_request(), name: value})
    for member_id, instance in (("wrong", "one"), (member.member_id, "other"), ("", None), ("wrong", None)):
        leaving = {"member_id": member_id, "group_instance_id": instance}
        wire.ask("leave_group", LEAVE, {"group_id": member.group, "members": [leaving]})
    for group in (member.group, "", wire.name("absent")):
        wire.ask("leave_group", LEAVE, {"group_id": group, "members": []}, label="nobody leaves")
        wire.ask("leave_group", 2, {"group_id": group, "member_id": "wrong"})
    for member_id, instance in (("wrong", "one"), ("wrong", "two"), (member.member_id, "two")):
        wire.ask("join_group", JOIN, join_body(member.group, member_id, group_instance_id=instance))
    member.heartbeat()


def static_members_that_come_back_changed(wire: Wire) -> None:
    first = stable_group(wire, "changing", instance="one")
    second = Member(wire, first.group, "B", instance="two")
    take_in(first, second)
    changed = Member(wire, first.group, "B changed", instance="two", protocols=(("range", subscription("else")),))
    changed.start_join()
    first.heartbeat(want="REBALANCE_IN_PROGRESS")
    first.join()
    changed.finish_join()
    second.heartbeat()
    back = Member(wire, first.group, "B back", instance="two")
    back.start_join()
    first.heartbeat(want="REBALANCE_IN_PROGRESS")
    first.join()
    back.finish_join()
    changed.heartbeat()
    twice = [{"member_id": "", "group_instance_id": "two"}] * 2
    wire.ask("leave_group", LEAVE, {"group_id": first.group, "members": twice}, label="the same one twice")
