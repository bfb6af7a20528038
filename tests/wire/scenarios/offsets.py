"""OffsetCommit, OffsetFetch and OffsetDelete, and which members may commit to a group."""

from typing import Any

from tests.wire.entities import Plain
from tests.wire.scenarios.membership import Member, stable_group, subscription
from tests.wire.transcript import Wire

NOBODY = "00000000-0000-4000-8000-00000000dead"


def part(partition: int = 0, offset: int = 5, metadata: str | None = "note", epoch: int = -1) -> Plain:
    return {
        "partition_index": partition,
        "committed_offset": offset,
        "committed_leader_epoch": epoch,
        "committed_metadata": metadata,
    }


def commit_body(group: str, topic: str, *parts: Plain, topic_id: str = "", **more: Any) -> Plain:
    named: Plain = {"name": topic}
    if topic_id:
        named["topic_id"] = topic_id
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "retention_time": -1,
        "topics": [{**named, "partitions": list(parts) or [part()]}],
        **more,
    }


def fetch_offsets(group: str, topics: list[Plain] | None, **more: Any) -> Plain:
    """Return a body for any version: one group up to version 7, a list of groups from version 8 on."""
    return {
        "group_id": group,
        "topics": topics,
        "groups": [{"group_id": group, "topics": topics, "member_id": None, "member_epoch": -1}],
        **more,
    }


def commits_at_every_version(wire: Wire) -> None:
    topic = wire.topic("committed", 2)
    topic_id = wire.topic_id(topic)
    for version in range(2, 11):
        group = wire.group(f"commits-v{version}")
        parts = (part(0, 5, f"note {version}", 0), part(1, 0, None), part(7, 1))
        wire.ask("offset_commit", version, commit_body(group, topic, *parts, topic_id=topic_id))
        asked = {"name": topic, "topic_id": topic_id, "partition_indexes": [0, 1, 7]}
        wire.ask("offset_fetch", min(version, 10), fetch_offsets(group, [asked]))
        wire.ask("offset_commit", version, commit_body(group, topic, part(0, 2, ""), topic_id=topic_id), label="back")
        wire.ask("offset_fetch", min(version, 10), fetch_offsets(group, [asked]), label="the newest counts")


def fetches_at_every_version(wire: Wire) -> None:
    topic = wire.topic("fetched", 2)
    topic_id = wire.topic_id(topic)
    group = wire.group("fetches")
    wire.until("offset_commit", 9, commit_body(group, topic, part(1, 42, "kept")), lambda answer: True)
    for version in range(1, 11):
        asked = {"name": topic, "topic_id": topic_id, "partition_indexes": [0, 1, 9]}
        wire.ask("offset_fetch", version, fetch_offsets(group, [asked]))
        unknown = {"name": wire.name("absent"), "topic_id": NOBODY, "partition_indexes": [0]}
        wire.ask("offset_fetch", version, fetch_offsets(group, [unknown]), label="unknown topic")
        wire.ask("offset_fetch", version, fetch_offsets(group, []), label="no topics")
        if version >= 2:
            wire.ask("offset_fetch", version, fetch_offsets(group, None), label="all topics")
        wire.ask("offset_fetch", version, fetch_offsets(wire.name("no-group"), [asked]), label="unknown group")
        wire.ask("offset_fetch", version, fetch_offsets("", [asked]), label="empty group id")
        if version >= 7:
            wire.ask("offset_fetch", version, fetch_offsets(group, [asked], require_stable=True), label="stable only")


def fetches_of_several_groups(wire: Wire) -> None:
    topic = wire.topic("several")
    topic_id = wire.topic_id(topic)
    groups = [wire.group("several-a"), wire.group("several-b")]
    for offset, group in enumerate(groups):
        wire.until("offset_commit", 9, commit_body(group, topic, part(0, offset)), lambda answer: True)
    for version in (8, 9, 10):
        asked = [{"name": topic, "topic_id": topic_id, "partition_indexes": [0]}]
        listed = [{"group_id": group, "topics": asked, "member_epoch": -1} for group in (*groups, wire.name("absent"))]
        wire.ask("offset_fetch", version, {"groups": listed})
        listed = [{"group_id": group, "topics": None, "member_epoch": -1} for group in groups]
        wire.ask("offset_fetch", version, {"groups": listed}, label="all topics")
        wire.ask("offset_fetch", version, {"groups": []}, label="no groups")
    member = stable_group(wire, "with-members")
    for member_id, epoch in (("", -1), (None, -1), (member.member_id, member.generation), ("nobody", 1), (None, 5)):
        one = {"group_id": member.group, "topics": None, "member_id": member_id, "member_epoch": epoch}
        wire.ask(
            "offset_fetch", 9, {"groups": [one]}, label=f"as {'A' if member_id == member.member_id else member_id}"
        )


def commits_that_are_refused(wire: Wire) -> None:
    topic = wire.topic("refused")
    topic_id = wire.topic_id(topic)
    group = wire.group("refuses")
    for version in (2, 3, 6, 7, 8, 9, 10):

        def ask(label: str, body: Plain, at: int = version) -> None:
            wire.ask("offset_commit", at, body, label=label)

        ask("empty group id", commit_body("", topic, topic_id=topic_id))
        ask("unknown topic", commit_body(group, wire.name("absent"), topic_id=NOBODY))
        ask("metadata too large", commit_body(group, topic, part(metadata="x" * 4097), topic_id=topic_id))
        ask("largest metadata", commit_body(group, topic, part(metadata="x" * 4096), topic_id=topic_id))
        ask("negative offset", commit_body(group, topic, part(offset=-5), topic_id=topic_id))
        ask("offset -1", commit_body(group, topic, part(offset=-1), topic_id=topic_id))
        ask("no topics", {**commit_body(group, topic), "topics": []})
        member: Plain = {"member_id": "nobody", "generation_id_or_member_epoch": 1}
        ask("a member of a group that is not there", commit_body(wire.name("none"), topic, topic_id=topic_id, **member))
        member = {"member_id": "", "generation_id_or_member_epoch": 1}
        ask("a generation of a group that is empty", commit_body(group, topic, topic_id=topic_id, **member))
    # Delete the group with the empty name, because other scenarios expect that it does not exist.
    wire.main.ask("delete_groups", 2, {"groups_names": [""]})


def commits_to_a_group_with_members(wire: Wire) -> None:
    topic = wire.topic("shared")
    member = stable_group(wire, "members-commit", topic)
    for version in (2, 5, 7, 8, 9):

        def ask(label: str, member_id: str, generation: int, at: int = version) -> None:
            who: Plain = {"member_id": member_id, "generation_id_or_member_epoch": generation}
            wire.ask("offset_commit", at, commit_body(member.group, topic, **who), label=label)

        ask("by its member", member.member_id, member.generation)
        ask("by no member", "", -1)
        ask("by a stranger", "nobody", member.generation)
        ask("in another generation", member.member_id, member.generation + 5)
        ask("in an older generation", member.member_id, member.generation - 1)
    fence: Plain = {"member_id": member.member_id, "generation_id_or_member_epoch": member.generation}
    wire.ask(
        "offset_commit",
        9,
        commit_body(member.group, topic, group_instance_id="no-such-instance", **fence),
        label="under an instance id that is not its own",
    )
    member.leave()
    wire.ask("offset_commit", 9, commit_body(member.group, topic, **fence), label="after it left")
    wire.ask("offset_commit", 9, commit_body(member.group, topic), label="by no member, once empty")


def deleting_offsets(wire: Wire) -> None:
    topic, other = wire.topic("deleting", 2), wire.topic("deleting-other")
    member = stable_group(wire, "deletes", topic)
    who: Plain = {"member_id": member.member_id, "generation_id_or_member_epoch": member.generation}
    for name in (topic, other):
        wire.main.ask("offset_commit", 9, commit_body(member.group, name, **who))

    def ask(label: str, group: str, *names: str, partition: int = 0) -> None:
        topics = [{"name": name, "partitions": [{"partition_index": partition}]} for name in names]
        wire.ask("offset_delete", 0, {"group_id": group, "topics": topics}, label=label)

    ask("a topic it subscribes to, and one it does not", member.group, topic, other)
    wire.ask("offset_fetch", 7, fetch_offsets(member.group, None), label="what is left")
    ask("unknown group", wire.name("absent"), topic)
    ask("empty group id", "", topic)
    ask("unknown topic", member.group, wire.name("absent"))
    ask("unknown partition", member.group, other, partition=9)
    ask("no topics", member.group)
    member.leave()
    ask("once the group is empty", member.group, topic)
    wire.ask("offset_fetch", 7, fetch_offsets(member.group, None), label="nothing is left")


def offsets_of_a_deleted_topic(wire: Wire) -> None:
    topic = wire.topic("vanishing")
    group = wire.group("outlives")
    wire.main.ask("offset_commit", 9, commit_body(group, topic))
    wire.main.ask("delete_topics", 6, {"topics": [{"name": topic}], "timeout": 10_000})
    wire.await_topic(topic, present=False)
    wire.ask(
        "offset_fetch",
        7,
        fetch_offsets(group, None),
        settled=lambda answer: not answer["topics"],
        label="they go with the topic",
    )


def offsets_that_are_named_twice(wire: Wire) -> None:
    topic, group = wire.topic("twice", 2), wire.group("twice")
    body = commit_body(group, topic, part(0, 1), part(0, 9), part(1, 3))
    wire.ask("offset_commit", 9, body, label="a partition twice")
    asked: Plain = {"name": topic, "partition_indexes": [0, 0, 1]}
    wire.ask("offset_fetch", 9, fetch_offsets(group, [asked]), label="a partition twice")
    body = commit_body(group, topic, part(0, 11))
    body["topics"] += commit_body(group, topic, part(1, 12))["topics"]
    wire.ask("offset_commit", 9, body, label="a topic twice")
    both = [{"name": topic, "partition_indexes": [index]} for index in (0, 1)]
    wire.ask("offset_fetch", 9, fetch_offsets(group, both), label="a topic twice")
    wire.ask("offset_fetch", 7, fetch_offsets(group, [{"name": topic, "partition_indexes": []}]), label="no partition")
    deleted = [{"partition_index": index} for index in (0, 0, 7)]
    body = {"group_id": group, "topics": [{"name": topic, "partitions": deleted}]}
    wire.ask("offset_delete", 0, body, label="a partition twice, and one that is not there")
    for name in (topic, wire.name("absent")):
        body = {"group_id": group, "topics": [{"name": name, "partitions": []}]}
        wire.ask("offset_delete", 0, body, label="no partition")
    wire.ask("offset_fetch", 9, fetch_offsets(group, None), label="what is left")
    wire.ask("delete_groups", 2, {"groups_names": [group, group]}, label="the group twice")


def odd_commits(wire: Wire) -> None:
    topic, group = wire.topic("odd", 2), wire.group("odd")

    def ask(label: str, name: str, *parts: Plain) -> None:
        wire.ask("offset_commit", 9, commit_body(group, name, *parts), label=label)

    ask("an invalid name", "bad name!")
    ask("an empty name", "")
    body = commit_body(group, topic, part(0, 3))
    body["topics"] += [{"name": name, "partitions": []} for name in (topic, wire.name("absent"))]
    wire.ask("offset_commit", 9, body, label="topics without partitions")
    body["topics"] = body["topics"][1:]
    wire.ask("offset_commit", 9, body, label="no partition at all")
    ask("partition -1", topic, part(-1, 1))
    ask("the largest offset, an epoch", topic, part(0, 2**63 - 1, "", 5))
    ask("metadata of 4096 bytes in fewer characters", topic, part(0, 5, "\u00e9" * 2048))
    ask("metadata of 4096 characters in more bytes", topic, part(0, 5, "\u00e9" * 4096))
    ask("metadata too large for one of two", topic, part(1, 5, "fits"), part(0, 5, "x" * 5000))
    wire.ask("offset_fetch", 9, fetch_offsets(group, None), label="what was kept")


def commits_of_static_members(wire: Wire) -> None:
    topic = wire.topic("fenced")
    member = stable_group(wire, "fences", topic, instance="one")
    tries: list[tuple[str, str | None, int]] = [
        (member.member_id, "one", member.generation),
        ("wrong", "one", member.generation),
        ("", "one", -1),
        ("", "one", member.generation),
        (member.member_id, None, member.generation),
        (member.member_id, "one", -1),
        (member.member_id, None, -1),
        ("", None, member.generation),
        ("wrong", None, -1),
        (member.member_id, "other", member.generation),
        ("wrong", "other", 99),
    ]
    for version in (7, 9):
        for member_id, instance, generation in tries:
            who: Plain = {"member_id": member_id, "group_instance_id": instance}
            who["generation_id_or_member_epoch"] = generation
            wire.ask("offset_commit", version, commit_body(member.group, topic, **who))
    member.leave()
    for member_id, instance, generation in tries:
        who = {"member_id": member_id, "group_instance_id": instance, "generation_id_or_member_epoch": generation}
        wire.ask("offset_commit", 9, commit_body(member.group, topic, **who), label="once empty")


def commits_during_a_rebalance(wire: Wire) -> None:
    topic = wire.topic("moving")
    first = stable_group(wire, "moving", topic)
    second = Member(wire, first.group, "B", protocols=(("range", subscription(topic)),))

    def commit(label: str, member_id: str, generation: int) -> None:
        who: Plain = {"member_id": member_id, "generation_id_or_member_epoch": generation}
        wire.ask("offset_commit", 9, commit_body(first.group, topic, **who), label=label)

    second.start_join()
    first.heartbeat(want="REBALANCE_IN_PROGRESS")
    commit("members are awaited: by A", first.member_id, first.generation)
    commit("members are awaited: by B", second.member_id, first.generation)
    commit("members are awaited: by nobody", "", -1)
    deleted = {"group_id": first.group, "topics": [{"name": topic, "partitions": [{"partition_index": 0}]}]}
    wire.ask("offset_delete", 0, deleted, label="members are awaited")
    wire.ask("delete_groups", 2, {"groups_names": [first.group]}, label="members are awaited")
    first.join()
    second.finish_join()
    commit("the assignment is awaited: by A", first.member_id, first.generation)
    commit("the assignment is awaited: by A of before", first.member_id, first.generation - 1)
    commit("the assignment is awaited: by nobody", "", -1)
    first.heartbeat()
    first.heartbeat(generation_id=first.generation - 1)
    second.start_sync()
    first.sync({first.member_id: b"of A"})
    second.finish_sync()
    commit("all is well: by B", second.member_id, second.generation)
    wire.ask("offset_fetch", 7, fetch_offsets(first.group, None), label="what was kept")


def offsets_of_a_group_that_is_no_consumer(wire: Wire) -> None:
    topic, group = wire.topic("connected"), wire.group("connects")
    member = Member(wire, group, "A", protocol_type="connect", protocols=(("p", b"\x01\x02"),))
    member.join()
    who: Plain = {"member_id": member.member_id, "generation_id_or_member_epoch": member.generation}
    wire.ask("offset_commit", 9, commit_body(group, topic, **who))
    deleted = {"group_id": group, "topics": [{"name": topic, "partitions": [{"partition_index": 0}]}]}
    wire.ask("offset_delete", 0, deleted, label="with a member")
    member.leave()
    wire.ask("offset_delete", 0, deleted, label="once empty")


def commits_that_make_no_group(wire: Wire) -> None:
    topic = wire.topic("unmade", 2)
    for label, parts in {
        "unknown partitions": [part(7)],
        "metadata too large": [part(0, 5, "x" * 5000)],
        "metadata too large for one of two": [part(0, 5, "x" * 5000), part(1, 5)],
    }.items():
        group = wire.group(label.replace(" ", "-"))
        wire.ask("offset_commit", 9, commit_body(group, topic, *parts), label=label)
        wire.ask("describe_groups", 6, {"groups": [group]}, label=label)
