"""OffsetCommit, OffsetFetch, OffsetDelete, and who may commit to which group."""

from typing import Any

from tests.wire.entities import Plain
from tests.wire.scenarios.membership import stable_group
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
    """The body for any version: up to 7 one group, from 8 on a list of groups."""
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
    # The group without a name is one that other scenarios expect not to be there.
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
