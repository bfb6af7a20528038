"""Classic groups: join, sync, heartbeat and leave in valid and invalid states, and the APIs that describe groups."""

import time
from typing import Any

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


def one_member_at_every_version(wire: Wire) -> None:
    for version in range(10):
        member = Member(wire, wire.group(f"alone-v{version}"), "A")
        member.join(version)
        member.sync({member.member_id: b"everything"}, min(version, SYNC))
        member.heartbeat(min(version, HEARTBEAT))
        member.leave(min(version, LEAVE))
        member.heartbeat(min(version, HEARTBEAT))


def joins_that_are_refused(wire: Wire) -> None:
    group = wire.group("refusing")

    def ask(label: str, version: int = JOIN, **more: Any) -> None:
        body = join_body(more.pop("group_id", group), **more)
        wire.ask("join_group", version, body, label=label)

    for version in (0, 3, 4, 9):
        ask("empty group id", version, group_id="")
        ask("session timeout too short", version, session_timeout=5_999)
        ask("session timeout too long", version, session_timeout=1_800_001)
        ask("negative session timeout", version, session_timeout=-1)
        ask("unknown member id", version, member_id="nobody")
        ask("no protocols", version, protocols=())
        ask("no protocol type", version, protocol_type="")
    ask("unknown member id with an instance id", 9, member_id="nobody", group_instance_id="one")
    odd = {"empty": "", "with odd characters": "a b/c", "too long": "x" * 250, "..": ".."}
    for i, (label, instance) in enumerate(odd.items()):
        ask(f"an instance id that is {label}", 9, group_id=wire.group(f"odd-{i}"), group_instance_id=instance)


def protocols_must_agree(wire: Wire) -> None:
    member = stable_group(wire, "agreeing")

    def ask(label: str, **more: Any) -> None:
        wire.ask("join_group", 3, join_body(member.group, **more), label=label)

    ask("another protocol type", protocol_type="connect")
    ask("no protocol in common", protocols=(("sticky", subscription("plain")),))
    ask("no protocols", protocols=())
    ask("unknown member", member_id="nobody")
    member.heartbeat()


def syncs_and_heartbeats_that_are_refused(wire: Wire) -> None:
    member = stable_group(wire, "strict")
    for version in range(6):
        member.sync({}, version)
        member.wire.ask("sync_group", version, {**member.sync_request(), "member_id": "nobody"}, label="unknown member")
        member.wire.ask("sync_group", version, {**member.sync_request(), "generation_id": 99}, label="other generation")
        absent = {**member.sync_request(), "group_id": wire.name("absent")}
        member.wire.ask("sync_group", version, absent, label="unknown group")
        member.wire.ask("sync_group", version, {**member.sync_request(), "group_id": ""}, label="empty group id")
    member.sync(protocol_type="connect")
    member.sync(protocol_name="sticky")
    member.sync(protocol_type=None, protocol_name=None)
    for version in range(5):
        member.heartbeat(version)
        member.heartbeat(version, member_id="nobody")
        member.heartbeat(version, member_id="")
        member.heartbeat(version, generation_id=99)
        member.heartbeat(version, generation_id=-1)
        member.heartbeat(version, group_id=wire.name("absent"))
        member.heartbeat(version, group_id="")


def leaves_that_are_refused(wire: Wire) -> None:
    member = stable_group(wire, "held")
    for version in range(6):

        def ask(label: str, group: str, *ids: tuple[str, str | None], at: int = version) -> None:
            if at < 3:
                body: Plain = {"group_id": group, "member_id": ids[0][0]}
            else:
                members = [{"member_id": one, "group_instance_id": instance} for one, instance in ids]
                body = {"group_id": group, "members": members}
            wire.ask("leave_group", at, body, label=label)

        ask("unknown member", member.group, ("nobody", None))
        ask("unknown group", wire.name("absent"), ("nobody", None))
        ask("empty group id", "", ("nobody", None))
        if version >= 3:
            ask("unknown instance", member.group, ("", "no-such-instance"))
            ask("several unknown", member.group, ("nobody", None), ("", "no-such-instance"))
            ask("no one", member.group)
    member.heartbeat()
    member.leave()


def an_eager_rebalance(wire: Wire) -> None:
    first = stable_group(wire, "eager")
    second = Member(
        wire, first.group, "B", protocols=(("range", subscription("of-b")), ("sticky", subscription("of-b")))
    )
    second.start_join()
    first.heartbeat(want="REBALANCE_IN_PROGRESS")
    describe(wire, first.group, "while members are awaited")
    first.sync()
    first.join()
    second.finish_join()
    first.heartbeat()
    describe(wire, first.group, "while the leader's assignment is awaited")
    second.start_sync()
    first.sync({first.member_id: b"of A", second.member_id: b"of B"})
    second.finish_sync()
    first.heartbeat()
    second.heartbeat()
    second.sync()
    describe(wire, first.group, "stable")
    second.leave()
    first.heartbeat(want="REBALANCE_IN_PROGRESS")
    first.join()
    first.sync({first.member_id: b"all"})
    first.leave()
    describe(wire, first.group, "empty")


def a_follower_that_joins_again_alone(wire: Wire) -> None:
    first = stable_group(wire, "again")
    second = Member(wire, first.group, "B")
    take_in(first, second)
    leader, follower = first, second
    follower.join()
    leader.heartbeat()
    # When the leader rejoins, the group needs a new assignment.
    leader.start_join()
    follower.heartbeat(want="REBALANCE_IN_PROGRESS")
    follower.join()
    leader.finish_join()


def a_member_that_does_not_come_back_is_dropped(wire: Wire) -> None:
    group = wire.group("dropping")
    first = Member(wire, group, "A", rebalance_timeout=1_000)
    first.join()
    first.sync({first.member_id: b"everything"})
    second = Member(wire, group, "B", rebalance_timeout=1_000)
    second.join()
    first.heartbeat()
    second.sync({second.member_id: b"everything"})
    second.heartbeat()


def a_new_member_while_the_assignment_is_awaited(wire: Wire) -> None:
    group = wire.group("restless")
    first = Member(wire, group, "A")
    first.join()
    second = Member(wire, group, "B")
    second.start_join()
    first.heartbeat(want="REBALANCE_IN_PROGRESS")
    first.sync({first.member_id: b"too late"})
    first.join()
    second.finish_join()


def a_join_with_an_id_never_used_expires_nothing(wire: Wire) -> None:
    group = wire.group("pending")
    wire.ask("join_group", 5, join_body(group), label="an id is handed out")
    describe(wire, group, "with a pending member")
    member = Member(wire, group, "A")
    member.join()
    member.sync({member.member_id: b"everything"})
    member.leave()


def describe_groups_at_every_version(wire: Wire) -> None:
    member = stable_group(wire, "described", instance="one")
    for version in range(7):
        body = {"groups": [member.group, wire.name("absent")], "include_authorized_operations": True}
        wire.ask("describe_groups", version, body)
        wire.ask("describe_groups", version, {"groups": [""]}, label="empty group id")
        wire.ask("describe_groups", version, {"groups": []}, label="none")
    member.leave()
    for version in (0, 6):
        wire.ask("describe_groups", version, {"groups": [member.group]}, label="empty group")


def list_groups_at_every_version(wire: Wire) -> None:
    stable = stable_group(wire, "listed-stable")
    empty = wire.group("listed-empty")
    _commit(wire, empty, wire.topic("listed"))
    own = {stable.group, empty}

    def ask(label: str, version: int, **filters: Any) -> None:
        def keep(answer: Plain) -> Plain:
            return {**answer, "groups": [group for group in answer["groups"] if group["group_id"] in own]}

        wire.ask("list_groups", version, filters, label=label, keep=keep)

    for version in range(6):
        ask("all", version)
    for states in (["Stable"], ["Empty"], ["stable", "empty"], ["PreparingRebalance"], ["Nonsense"], []):
        ask(f"states {states}", 4, states_filter=states)
        ask(f"states {states}", 5, states_filter=states)
    for types in (["classic"], ["Classic"], ["consumer"], ["nonsense"], []):
        ask(f"types {types}", 5, types_filter=types)
    ask("a state and a type", 5, states_filter=["Stable"], types_filter=["classic"])


def _commit(wire: Wire, group: str, topic: str, offset: int = 3) -> None:
    part = {"partition_index": 0, "committed_offset": offset, "committed_metadata": "note"}
    body = {"group_id": group, "topics": [{"name": topic, "partitions": [part]}], "generation_id_or_member_epoch": -1}
    wire.until("offset_commit", 8, body, lambda answer: answer["topics"][0]["partitions"][0]["error_code"] == "NONE")


def delete_groups_at_every_version(wire: Wire) -> None:
    topic = wire.topic("deleted-groups")
    for version in range(3):
        member = stable_group(wire, f"busy-v{version}")
        idle = wire.group(f"idle-v{version}")
        _commit(wire, idle, topic)
        body = {"groups_names": [member.group, idle, wire.name("absent"), ""]}
        wire.ask("delete_groups", version, body)
        wire.ask("offset_fetch", 7, {"group_id": idle, "topics": None}, label="its offsets are gone")
        wire.ask("delete_groups", version, {"groups_names": [idle]}, label="again")
        member.leave()
        wire.ask("delete_groups", version, {"groups_names": [member.group]}, label="once empty")
        wire.ask("delete_groups", version, {"groups_names": []}, label="none")


def find_coordinator_at_every_version(wire: Wire) -> None:
    group = wire.group("sought")
    for version in range(4):
        wire.ask("find_coordinator", version, {"key": group, "key_type": 0})
    for version in range(1, 4):
        wire.ask("find_coordinator", version, {"key": group, "key_type": 9}, label="no such type")
    for version in range(4, 7):
        wire.ask("find_coordinator", version, {"key_type": 0, "coordinator_keys": [group, wire.name("other")]})
        wire.ask("find_coordinator", version, {"key_type": 0, "coordinator_keys": []}, label="no keys")
        wire.ask("find_coordinator", version, {"key_type": 9, "coordinator_keys": [group]}, label="no such type")
    wire.ask("find_coordinator", 3, {"key": "", "key_type": 0}, label="empty key")
    wire.ask("find_coordinator", 4, {"key_type": 0, "coordinator_keys": [""]}, label="empty key")


def a_session_that_ends(wire: Wire) -> None:
    group = wire.group("sleepy")
    member = Member(wire, group, "A", session_timeout=6_000)
    member.join()
    member.sync({member.member_id: b"everything"})
    # Wait for the shortest session timeout that the broker allows.
    time.sleep(6.3)
    body = {"groups": [group]}
    wire.ask(
        "describe_groups",
        5,
        body,
        label="its member was dropped",
        settled=lambda answer: answer["groups"][0]["group_state"] == "Empty",
    )
    member.heartbeat()


def subscriptions_are_kept(wire: Wire) -> None:
    topic = wire.topic("subscribed")
    member = stable_group(wire, "subscribing", topic)
    describe(wire, member.group, "with what it subscribes to")
    second = Member(wire, member.group, "B", protocols=(("range", subscription(topic, wire.name("other"))),))
    second.start_join()
    member.heartbeat(want="REBALANCE_IN_PROGRESS")
    member.join()
    second.finish_join()


def a_leader_that_joins_again(wire: Wire) -> None:
    first = stable_group(wire, "led")
    second = Member(wire, first.group, "B")
    take_in(first, second)
    first.start_join()
    second.heartbeat(want="REBALANCE_IN_PROGRESS")
    second.join()
    first.finish_join()
    second.join()
    first.join()
    second.start_sync()
    first.sync({first.member_id: b"of A again"})
    second.finish_sync()
    second.leave()
    first.heartbeat(want="REBALANCE_IN_PROGRESS")
    first.join()
    first.sync({first.member_id: b"everything"})
    first.heartbeat()


def a_member_that_has_but_its_id(wire: Wire) -> None:
    group = wire.group("only-an-id")
    member_id = wire.ask("join_group", JOIN, join_body(group))["member_id"]
    for generation in (0, -1):
        body: Plain = {"group_id": group, "generation_id": generation, "member_id": member_id}
        wire.ask("heartbeat", HEARTBEAT, body)
        wire.ask("sync_group", SYNC, {**body, "protocol_type": "consumer", "protocol_name": "range"})
    leaving = {"member_id": member_id, "group_instance_id": None}
    wire.ask("leave_group", LEAVE, {"group_id": group, "members": [leaving]})
    wire.ask("join_group", JOIN, join_body(group, member_id), label="the id is gone")
    wire.ask("delete_groups", 2, {"groups_names": [group]})


def odd_joins(wire: Wire) -> None:
    joins: dict[str, Plain] = {
        "another type": {"protocol_type": "other", "protocols": (("p", b"\x00"),)},
        "a protocol without a name": {"protocols": (("", subscription("a")),)},
        "the shortest session": {"session_timeout": 6_000},
        "the longest session": {"session_timeout": 1_800_000},
        "a reason": {"reason": "because"},
    }
    for i, (label, more) in enumerate(joins.items()):
        for version in (6, JOIN):
            known = {key: value for key, value in more.items() if key != "reason" or version == JOIN}
            member = Member(wire, wire.group(f"odd-{i}-{version}"), label, **known)
            member.join(version)
            member.leave()
